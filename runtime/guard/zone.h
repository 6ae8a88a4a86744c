// What stands in the bytes behind a block: a pattern of the block's address and generation, so that neither a neighbour's
// zone nor an older block's at the same place is taken for it. Also the fills of poisoned memory. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xlog {

inline constexpr size_t kLargestZone = 4096;
inline constexpr unsigned char kPoisonAllocated = 0xCB;
inline constexpr unsigned char kPoisonFreed = 0xDB;

struct Damage {
  size_t first = 0;  // bad bytes, counted from the start of what was looked at
  size_t last = 0;
  size_t count = 0;
  unsigned char found[16] = {};  // from `first` on
  unsigned char expected[16] = {};
  unsigned shown = 0;  // of the two
};

uint64_t zone_seed(uint64_t ptr, uint64_t generation) noexcept;
// Bytes `from` to `from + n` of the zone with that seed.
void fill_zone(uint64_t seed, size_t from, unsigned char* out, size_t n) noexcept;

// Looks at a part of a zone, or of memory filled with one byte, that begins `from` bytes into it; adds to `damage`.
void look_at_zone(uint64_t seed, size_t from, const unsigned char* found, size_t n, Damage& damage) noexcept;
void look_at_fill(unsigned char fill, size_t from, const unsigned char* found, size_t n, Damage& damage) noexcept;

}  // namespace xlog
