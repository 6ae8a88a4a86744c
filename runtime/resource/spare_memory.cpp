#include "runtime/resource/spare_memory.h"

namespace xlog {

SpareMemory::Spare SpareMemory::remove(size_t index) noexcept {
  Spare spare = all_[index];
  --count_;
  for (size_t i = index; i < count_; ++i) {
    all_[i] = all_[i + 1];
  }
  bytes_.fetch_sub(spare.bytes, std::memory_order_relaxed);
  return spare;
}

bool SpareMemory::take(size_t bytes, CUmemGenericAllocationHandle& out) noexcept {
  if (this->bytes() < bytes) {
    return false;
  }
  LockGuard guard(lock_);
  for (size_t i = count_; i-- != 0;) {
    if (all_[i].bytes == bytes) {
      out = remove(i).memory;
      return true;
    }
  }
  return false;
}

// Until at most so much is kept.
bool SpareMemory::release(const DriverApi& driver, uint64_t most_bytes, size_t most) noexcept {
  for (bool any = false;; any = true) {
    Spare oldest{};
    {
      LockGuard guard(lock_);
      if (count_ == 0 || (count_ <= most && bytes() <= most_bytes)) {
        return any;
      }
      oldest = remove(0);
    }
    driver.cuMemRelease(oldest.memory);
  }
}

void SpareMemory::give(const DriverApi& driver, size_t bytes, CUmemGenericAllocationHandle memory) noexcept {
  bool kept = false;
  if (bytes <= kMostBytes / 2) {
    release(driver, kMostBytes - bytes, kMost - 1);
    LockGuard guard(lock_);
    kept = count_ < kMost;
    if (kept) {
      all_[count_++] = {.bytes = bytes, .memory = memory};
      bytes_.fetch_add(bytes, std::memory_order_relaxed);
    }
  }
  if (!kept) {
    driver.cuMemRelease(memory);
  }
}

}  // namespace xlog
