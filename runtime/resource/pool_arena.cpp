#include "runtime/resource/pool_arena.h"

namespace xlog {

namespace {

// A bin holds ranges of nearly one size: this many are tried before a larger bin is.
constexpr int kTries = 8;

}  // namespace

size_t PoolArena::bin_of(size_t bytes) noexcept {
  size_t units = bytes / kRangeStep;
  if (units < 4) {
    return units;
  }
  auto log = static_cast<size_t>(63 - __builtin_clzll(units));
  size_t bin = log * 4 + (units >> (log - 2) & 3) - 4;
  return bin < kBins ? bin : kBins - 1;
}

void PoolArena::link(Range* range) noexcept {
  size_t bin = bin_of(range->bytes);
  range->free = true;
  range->bin_before = nullptr;
  range->bin_after = bins_[bin];
  if (range->bin_after != nullptr) {
    range->bin_after->bin_before = range;
  }
  bins_[bin] = range;
  filled_[bin / 64] |= uint64_t{1} << bin % 64;
}

void PoolArena::unlink(Range* range) noexcept {
  size_t bin = bin_of(range->bytes);
  range->free = false;
  (range->bin_before != nullptr ? range->bin_before->bin_after : bins_[bin]) = range->bin_after;
  if (range->bin_after != nullptr) {
    range->bin_after->bin_before = range->bin_before;
  }
  if (bins_[bin] == nullptr) {
    filled_[bin / 64] &= ~(uint64_t{1} << bin % 64);
  }
}

Range* PoolArena::search(size_t bytes) const noexcept {
  size_t bin = bin_of(bytes);
  int tries = bin == kBins - 1 ? INT32_MAX : kTries;
  for (Range* at = bins_[bin]; at != nullptr && tries > 0; at = at->bin_after, --tries) {
    if (at->bytes >= bytes) {
      return at;
    }
  }
  for (size_t word = ++bin / 64; bin < kBins && word < kBins / 64; ++word) {
    uint64_t bits = filled_[word];
    if (word == bin / 64) {
      bits &= ~uint64_t{0} << bin % 64;
    }
    if (bits != 0) {
      Range* found = bins_[word * 64 + static_cast<size_t>(__builtin_ctzll(bits))];
      return found->bytes >= bytes ? found : nullptr;
    }
  }
  return nullptr;
}

Range* PoolArena::take(size_t bytes) noexcept {
  Range* range = search(bytes);
  if (range == nullptr) {
    return nullptr;
  }
  unlink(range);
  if (range->bytes - bytes >= kRangeStep && spares != nullptr) {
    Range* rest = spares;
    spares = rest->next;
    *rest = {};
    rest->ptr = range->ptr + bytes;
    rest->bytes = range->bytes - bytes;
    rest->chunk = range->chunk;
    rest->tick = range->tick;
    rest->before = range;
    rest->after = range->after;
    if (rest->after != nullptr) {
      rest->after->before = rest;
    }
    range->after = rest;
    range->bytes = bytes;
    link(rest);
  }
  return range;
}

void PoolArena::give(Range* range, Tick tick) noexcept {
  range->tick = tick;
  auto absorb = [&](Range* left, Range* right) {
    left->bytes += right->bytes;
    left->after = right->after;
    if (left->after != nullptr) {
      left->after->before = left;
    }
    left->tick = left->tick > right->tick ? left->tick : right->tick;
    right->next = spares;
    spares = right;
  };
  if (range->after != nullptr && range->after->free) {
    unlink(range->after);
    absorb(range, range->after);
  }
  if (range->before != nullptr && range->before->free) {
    Range* left = range->before;
    unlink(left);
    absorb(left, range);
    range = left;
  }
  link(range);
}

void PoolArena::attach(Chunk* chunk, Range* range, Tick tick) noexcept {
  range->tick = tick;
  chunk->before = nullptr;
  chunk->next = chunks;
  if (chunks != nullptr) {
    chunks->before = chunk;
  }
  chunks = chunk;
  link(range);
}

Chunk* PoolArena::detach_unused(size_t bytes) noexcept {
  for (Chunk* chunk = chunks; chunk != nullptr; chunk = chunk->next) {
    Range* only = chunk->first;
    if (only->free && only->after == nullptr && only->bytes >= bytes) {
      unlink(only);
      (chunk->before != nullptr ? chunk->before->next : chunks) = chunk->next;
      if (chunk->next != nullptr) {
        chunk->next->before = chunk->before;
      }
      chunk->before = nullptr;
      chunk->next = nullptr;
      return chunk;
    }
  }
  return nullptr;
}

}  // namespace xlog
