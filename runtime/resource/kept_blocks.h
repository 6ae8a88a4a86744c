// Plain blocks that were freed and wait to be given out again: by context and exact size, the newest first; the oldest
// of all is the first to go. Thread-safe; all zero is empty.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/cuda_types.h"
#include "runtime/base/lock.h"
#include "runtime/resource/slab.h"

namespace xlog {

struct KeptBlock {
  CUdeviceptr ptr;
  size_t bytes;  // as it was requested: that is what the driver checks copies and answers ranges by
  size_t taken;
  CUcontext context;
  bool shared;      // not to be kept at all
  KeptBlock* next;  // of its size, and in the slab
  KeptBlock* older;
  KeptBlock* newer;
};

class KeptBlocks {
 public:
  // A node for a block that is to be kept; nullptr when there is no host memory.
  KeptBlock* make(CUcontext context, CUdeviceptr ptr, size_t bytes, size_t taken, bool shared) noexcept;
  void drop(KeptBlock* block) noexcept { nodes_.put(block); }
  // It may be given out.
  void keep(KeptBlock* block) noexcept;
  // 0 when none of that size is kept.
  CUdeviceptr take(CUcontext context, size_t bytes) noexcept;
  // False when there is none.
  bool take_oldest(KeptBlock& out) noexcept;
  bool take_of(CUcontext context, KeptBlock& out) noexcept;
  // What the driver has taken for what is kept.
  [[nodiscard]] uint64_t bytes() const noexcept { return kept_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kBuckets = 1024;
  [[nodiscard]] KeptBlock*& bucket(CUcontext context, size_t bytes) noexcept;
  KeptBlock remove(KeptBlock* block) noexcept;  // under the lock

  Lock lock_{};
  std::atomic<uint64_t> kept_{0};
  KeptBlock* oldest_ = nullptr;
  KeptBlock* newest_ = nullptr;
  KeptBlock* buckets_[kBuckets] = {};
  Slab<KeptBlock> nodes_;
};

}  // namespace xlog
