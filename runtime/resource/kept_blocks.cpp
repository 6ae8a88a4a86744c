#include "runtime/resource/kept_blocks.h"

namespace xlog {

KeptBlock*& KeptBlocks::bucket(CUcontext context, size_t bytes) noexcept {
  uint64_t key = (bytes ^ reinterpret_cast<uint64_t>(context)) * 0x9E3779B97F4A7C15ULL;
  return buckets_[key >> 54 & (kBuckets - 1)];
}

KeptBlock* KeptBlocks::make(CUcontext context, CUdeviceptr ptr, size_t bytes, size_t taken, bool shared) noexcept {
  KeptBlock* block = nodes_.get();
  if (block != nullptr) {
    *block = {.ptr = ptr,
              .bytes = bytes,
              .taken = taken,
              .context = context,
              .shared = shared,
              .next = nullptr,
              .older = nullptr,
              .newer = nullptr};
  }
  return block;
}

void KeptBlocks::keep(KeptBlock* block) noexcept {
  LockGuard guard(lock_);
  KeptBlock*& head = bucket(block->context, block->bytes);
  block->next = head;
  head = block;
  block->older = newest_;
  (newest_ != nullptr ? newest_->newer : oldest_) = block;
  newest_ = block;
  kept_.fetch_add(block->taken, std::memory_order_relaxed);
}

KeptBlock KeptBlocks::remove(KeptBlock* block) noexcept {
  KeptBlock** at = &bucket(block->context, block->bytes);
  while (*at != block) {
    at = &(*at)->next;
  }
  *at = block->next;
  (block->older != nullptr ? block->older->newer : oldest_) = block->newer;
  (block->newer != nullptr ? block->newer->older : newest_) = block->older;
  kept_.fetch_sub(block->taken, std::memory_order_relaxed);
  KeptBlock copy = *block;
  nodes_.put(block);
  return copy;
}

CUdeviceptr KeptBlocks::take(CUcontext context, size_t bytes) noexcept {
  LockGuard guard(lock_);
  for (KeptBlock* each = bucket(context, bytes); each != nullptr; each = each->next) {
    if (each->bytes == bytes && each->context == context) {
      return remove(each).ptr;
    }
  }
  return 0;
}

bool KeptBlocks::take_oldest(KeptBlock& out) noexcept {
  LockGuard guard(lock_);
  bool any = oldest_ != nullptr;
  if (any) {
    out = remove(oldest_);
  }
  return any;
}

bool KeptBlocks::take_of(CUcontext context, KeptBlock& out) noexcept {
  LockGuard guard(lock_);
  for (KeptBlock* each = oldest_; each != nullptr; each = each->newer) {
    if (each->context == context) {
      out = remove(each);
      return true;
    }
  }
  return false;
}

}  // namespace xlog
