// Plain blocks that were freed and wait to be given out again: by context and exact size, the newest first; the oldest
// of all is the first to go. A context is known by the number of its incarnation (context_lanes.h), so a block of a context that has
// ended can never be given out in another one that has the same handle. Each call takes constant time, but for each_of() and
// drop_all_of(), which walk over all that is kept. Thread-safe; all zero is empty.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/cuda_types.h"
#include "runtime/base/lock.h"
#include "runtime/resource/free_queue.h"
#include "runtime/resource/slab.h"

namespace xlog {

struct KeptBlock {
  CUdeviceptr ptr = 0;
  size_t bytes = 0;  // as it was requested: that is what the driver checks copies and answers ranges by
  size_t taken = 0;
  CUcontext context = nullptr;
  uint64_t incarnation = 0;     // of the context
  bool shared = false;          // not to be kept at all
  QueuedFree queued{};          // while its work is not done
  KeptBlock* next = nullptr;    // in the slab, or in a list that was taken out
  KeptBlock* before = nullptr;  // of its size
  KeptBlock* behind = nullptr;
  KeptBlock* older = nullptr;
  KeptBlock* newer = nullptr;
};

class KeptBlocks {
 public:
  // A node for a block that is to be kept; nullptr when there is no host memory.
  KeptBlock* make(const KeptBlock& block) noexcept;
  void drop(KeptBlock* block) noexcept { nodes_.put(block); }
  // It may be given out.
  void keep(KeptBlock* block) noexcept;
  // 0 when none of that size is kept.
  CUdeviceptr take(uint64_t incarnation, size_t bytes) noexcept;
  // False when there is none. act(const KeptBlock&) is called under the lock: for what has to be done before each_of() of another
  // thread can miss the block.
  template <class Act>
  bool take_oldest(KeptBlock& out, Act act) noexcept {
    LockGuard guard(lock_);
    KeptBlock* oldest = oldest_;
    if (oldest == nullptr) {
      return false;
    }
    unlink(oldest);
    act(*oldest);
    out = *oldest;
    nodes_.put(oldest);
    return true;
  }
  // act(const KeptBlock&) for each block of a context, under the lock.
  template <class Act>
  void each_of(uint64_t incarnation, Act act) noexcept {
    LockGuard guard(lock_);
    for (KeptBlock* each = oldest_; each != nullptr; each = each->newer) {
      if (each->incarnation == incarnation) {
        act(*each);
      }
    }
  }
  // Takes out all blocks of a context. act(const KeptBlock&) is called for each, without a lock.
  template <class Act>
  void drop_all_of(uint64_t incarnation, Act act) noexcept {
    KeptBlock* taken = take_all_of(incarnation);
    for (KeptBlock* each = taken; each != nullptr; each = each->next) {
      act(*each);
    }
    nodes_.put_list(taken);
  }
  // What the driver has taken for what is kept.
  [[nodiscard]] uint64_t bytes() const noexcept { return kept_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kBuckets = 1024;
  [[nodiscard]] KeptBlock*& bucket(uint64_t incarnation, size_t bytes) noexcept;
  // The lock is held.
  void unlink(KeptBlock* block) noexcept;
  KeptBlock* take_all_of(uint64_t incarnation) noexcept;

  Lock lock_{};
  std::atomic<uint64_t> kept_{0};
  KeptBlock* oldest_ = nullptr;
  KeptBlock* newest_ = nullptr;
  KeptBlock* buckets_[kBuckets] = {};
  Slab<KeptBlock> nodes_;
};

}  // namespace xlog
