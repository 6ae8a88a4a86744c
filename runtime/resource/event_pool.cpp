#include "runtime/resource/event_pool.h"

#include "runtime/resource/current_context.h"

namespace xlog {

CUresult make_event(const DriverApi& driver, CUcontext context, CUevent& out) noexcept {
  CurrentContext current(driver, context);
  return current.result() == CUDA_SUCCESS ? driver.cuEventCreate(&out, CU_EVENT_DISABLE_TIMING) : current.result();
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
