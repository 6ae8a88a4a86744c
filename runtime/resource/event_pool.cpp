#include "runtime/resource/event_pool.h"

namespace xlog {

CUresult make_event(const DriverApi& driver, CUcontext context, CUevent& out) noexcept {
  CUresult result = driver.cuCtxPushCurrent_v2(context);
  if (result == CUDA_SUCCESS) {
    result = driver.cuEventCreate(&out, CU_EVENT_DISABLE_TIMING);
    CUcontext popped = nullptr;
    driver.cuCtxPopCurrent_v2(&popped);
  }
  return result;
}

CUresult EventPool::take(const DriverApi& driver, CUcontext context, CUevent& out) noexcept {
  {
    LockGuard guard(lock_);
    if (count_ != 0) {
      out = events_[--count_];
      return CUDA_SUCCESS;
    }
  }
  return make_event(driver, context, out);
}

void EventPool::give(const DriverApi& driver, CUevent event) noexcept {
  {
    LockGuard guard(lock_);
    if (count_ < kKept) {
      events_[count_++] = event;
      return;
    }
  }
  driver.cuEventDestroy_v2(event);
}

}  // namespace xlog
