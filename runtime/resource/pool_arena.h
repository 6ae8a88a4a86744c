// The part of a pool that belongs to one stream: big blocks of the upstream, cut into ranges, and the free ranges by
// size. A range that is freed joins its free neighbours. Not thread-safe but for its lock; never calls the driver.
#pragma once

#include <atomic>

#include "runtime/resource/address_table.h"
#include "runtime/resource/block_uses.h"
#include "runtime/resource/waiting_queue.h"

namespace xlog {

struct Chunk;

// A piece of a chunk: free, live, or given back and waiting for uses on other streams.
struct alignas(128) Range {  // nodes of different arenas share no cache line
  uint64_t ptr;
  size_t bytes;  // a multiple of kRangeStep, but for the last of a chunk
  Range* before;
  Range* after;
  Range* bin_before;
  Range* bin_after;
  Chunk* chunk;
  bool free;
  Tick tick;  // free: of the arena's stream; work before it may still use the range
  // live
  size_t requested;
  Generation generation;
  StreamId stream;
  BlockUses uses;
  StreamUse* waits_for;  // given back: these
  Range* next;           // of the slab, or of the ranges that wait
};
inline constexpr size_t kRangeStep = 512;

// A block of the upstream.
struct Chunk {
  DeviceBlock block;
  Range* first;
  Chunk* before;
  Chunk* next;
};

class alignas(128) PoolArena {
 public:
  Lock lock;  // of all that follows

  // The best range for `bytes` (a multiple of the step), cut to size and no longer free; nullptr when there is none.
  Range* take(size_t bytes) noexcept;
  // The range is free for what comes after `tick` in the arena's stream. Joins its free neighbours.
  void give(Range* range, Tick tick) noexcept;

  // `range` is the chunk's only one, and free.
  void attach(Chunk* chunk, Range* range, Tick tick) noexcept;
  // A chunk of at least `bytes` of which nothing is in use leaves the arena; nullptr when there is none.
  Chunk* detach_unused(size_t bytes) noexcept;

  struct LiveRange {
    uint64_t ptr = 0;
    Range* range = nullptr;
  };
  AddressTable<LiveRange> live;
  Range* spares;                        // nodes for the next cuts
  WaitingQueue<Range> waiting;          // given back, with uses elsewhere; under a lock of its own
  std::atomic<uint64_t> live_bytes;     // requested
  std::atomic<uint64_t> waiting_bytes;  // requested
  uint64_t next_generation;
  uint64_t generations_left;
  Chunk* chunks;

 private:
  static constexpr size_t kBins = 192;  // four a power of two
  static size_t bin_of(size_t bytes) noexcept;
  Range* search(size_t bytes) const noexcept;
  void link(Range* range) noexcept;
  void unlink(Range* range) noexcept;

  uint64_t filled_[kBins / 64];
  Range* bins_[kBins];
};

}  // namespace xlog
