#include "runtime/guard/zone.h"

#include <cstring>

namespace xlog {

namespace {

uint64_t mix(uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

unsigned char zone_byte(uint64_t seed, size_t i) noexcept {
  return static_cast<unsigned char>(mix(seed + i / 8 * 0x9E3779B97F4A7C15ULL) >> (i % 8 * 8));
}

void note(Damage& damage, size_t at) noexcept {
  if (damage.count == 0) {
    damage.first = at;
  }
  damage.last = at;
  ++damage.count;
}

void show(Damage& damage, size_t at, unsigned char found, unsigned char expected) noexcept {
  if (damage.count != 0 && damage.shown < sizeof damage.found && at == damage.first + damage.shown) {
    damage.found[damage.shown] = found;
    damage.expected[damage.shown++] = expected;
  }
}

}  // namespace

uint64_t zone_seed(uint64_t ptr, uint64_t generation) noexcept { return mix(ptr ^ mix(generation)); }

void fill_zone(uint64_t seed, size_t from, unsigned char* out, size_t n) noexcept {
  for (size_t i = 0; i < n; ++i) {
    out[i] = zone_byte(seed, from + i);
  }
}

void look_at_zone(uint64_t seed, size_t from, const unsigned char* found, size_t n, Damage& damage) noexcept {
  for (size_t i = 0; i < n; ++i) {
    unsigned char expected = zone_byte(seed, from + i);
    if (found[i] != expected) {
      note(damage, from + i);
    }
    show(damage, from + i, found[i], expected);
  }
}

void look_at_fill(unsigned char fill, size_t from, const unsigned char* found, size_t n, Damage& damage) noexcept {
  // Nearly all of it is as it was: a byte against the one before it, by the C library's own loop.
  if (n == 0 || (found[0] == fill && std::memcmp(found, found + 1, n - 1) == 0)) {
    return;
  }
  for (size_t i = 0; i < n; ++i) {
    if (found[i] != fill) {
      note(damage, from + i);
    }
    show(damage, from + i, found[i], fill);
  }
}

}  // namespace xlog
