// Pinned host memory that is made at the first need and kept: what a GPU writes to without a stop (a copy into pageable
// memory was measured to take 15 us longer, and waits for all that is before it in the stream). It is memory of our own,
// pinned by a context of the program; when that ends the next one pins it. Thread-safe; all zero has none yet.
#pragma once

#include <atomic>

#include "runtime/base/driver_api.h"
#include "runtime/base/lock.h"
#include "runtime/base/memory_map.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

class PinnedMemory {
 public:
  // Always the same memory, `bytes` of it; nullptr when it cannot be pinned. A context is current.
  unsigned char* get(const DriverApi& driver, size_t bytes) noexcept {
    if (owner_.load(std::memory_order_acquire) != nullptr) {
      return data_;
    }
    LockGuard guard(lock_);
    if (owner_.load(std::memory_order_relaxed) == nullptr && !none_) {
      RelaxedCapture relaxed(driver);
      CUcontext context = nullptr;
      data_ = data_ != nullptr ? data_ : static_cast<unsigned char*>(map_state(bytes));
      none_ = data_ == nullptr || driver.cuMemHostRegister_v2 == nullptr || driver.cuCtxGetCurrent(&context) != CUDA_SUCCESS ||
              driver.cuMemHostRegister_v2(data_, bytes, CU_MEMHOSTREGISTER_PORTABLE) != CUDA_SUCCESS;
      owner_.store(none_ ? nullptr : context, std::memory_order_release);
    }
    return none_ ? nullptr : data_;
  }
  [[nodiscard]] unsigned char* data() const noexcept { return data_; }
  void context_ended(CUcontext context) noexcept { owner_.compare_exchange_strong(context, nullptr, std::memory_order_acq_rel); }

 private:
  Lock lock_{};
  std::atomic<CUcontext> owner_{nullptr};
  unsigned char* data_ = nullptr;
  bool none_ = false;
};

}  // namespace xlog
