#include "runtime/resource/kept_blocks.h"

namespace xlog {

KeptBlock*& KeptBlocks::bucket(uint64_t incarnation, size_t bytes) noexcept {
  uint64_t key = (bytes ^ incarnation << 40) * 0x9E3779B97F4A7C15ULL;
  return buckets_[key >> 54 & (kBuckets - 1)];
}

KeptBlock* KeptBlocks::make(const KeptBlock& block) noexcept {
  KeptBlock* made = nodes_.get();
  if (made != nullptr) {
    *made = block;
    made->queued.what = made;
  }
  return made;
}

void KeptBlocks::keep(KeptBlock* block) noexcept {
  LockGuard guard(lock_);
  KeptBlock*& head = bucket(block->incarnation, block->bytes);
  block->before = nullptr;
  block->behind = head;
  if (head != nullptr) {
    head->before = block;
  }
  head = block;
  block->newer = nullptr;
  block->older = newest_;
  (newest_ != nullptr ? newest_->newer : oldest_) = block;
  newest_ = block;
  kept_.fetch_add(block->taken, std::memory_order_relaxed);
}

void KeptBlocks::unlink(KeptBlock* block) noexcept {
  (block->before != nullptr ? block->before->behind : bucket(block->incarnation, block->bytes)) = block->behind;
  if (block->behind != nullptr) {
    block->behind->before = block->before;
  }
  (block->older != nullptr ? block->older->newer : oldest_) = block->newer;
  (block->newer != nullptr ? block->newer->older : newest_) = block->older;
  kept_.fetch_sub(block->taken, std::memory_order_relaxed);
}

CUdeviceptr KeptBlocks::take(uint64_t incarnation, size_t bytes) noexcept {
  LockGuard guard(lock_);
  KeptBlock* each = bucket(incarnation, bytes);
  while (each != nullptr && (each->bytes != bytes || each->incarnation != incarnation)) {
    each = each->behind;
  }
  if (each == nullptr) {
    return 0;
  }
  unlink(each);
  CUdeviceptr ptr = each->ptr;
  nodes_.put(each);
  return ptr;
}

KeptBlock* KeptBlocks::take_all_of(uint64_t incarnation) noexcept {
  LockGuard guard(lock_);
  KeptBlock* taken = nullptr;
  for (KeptBlock* each = oldest_; each != nullptr;) {
    KeptBlock* newer = each->newer;
    if (each->incarnation == incarnation) {
      unlink(each);
      each->next = taken;
      taken = each;
    }
    each = newer;
  }
  return taken;
}

}  // namespace xlog
