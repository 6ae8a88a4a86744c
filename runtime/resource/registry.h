// The blocks that are live: pointer -> what is known of it. Sharded, so that frees of different pointers do not wait for
// each other. A block is taken out before the driver frees its address (another thread may be given that address at
// once) and comes back if the free fails. Thread-safe; all zero is empty; never calls the driver.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/lock.h"
#include "runtime/resource/block.h"

namespace xlog {

class BlockRegistry {
 public:
  // True when a block went out of our sight, which is then in `ended`: an older one that stood at the address (the driver
  // gave it out again, so it was freed unseen), or this one, when there is no host memory to keep it.
  bool insert(const DeviceBlock& block, DeviceBlock& ended) noexcept;
  bool take(uint64_t ptr, DeviceBlock& out) noexcept;
  // Removes up to `capacity` blocks that `matches`; returns how many. Fewer than `capacity`: there are no more.
  size_t take_if(bool (*matches)(const DeviceBlock&, const void*), const void* context, DeviceBlock* out, size_t capacity) noexcept;
  [[nodiscard]] size_t size() noexcept;

 private:
  static constexpr size_t kShards = 64;
  struct Shard {
    Lock lock;
    size_t count;
    size_t capacity;  // power of two, or 0
    DeviceBlock* slots;
  };

  Shard& shard(uint64_t ptr) noexcept;
  static size_t find(const Shard& shard, uint64_t ptr) noexcept;
  static bool grow(Shard& shard) noexcept;
  static void erase(Shard& shard, size_t at) noexcept;

  Shard shards_[kShards];
};

}  // namespace xlog
