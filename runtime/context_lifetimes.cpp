// The calls that begin and end contexts (contexts.h says under which lock, and why).
#include <pthread.h>

#include "runtime/base/ask.h"
#include "runtime/resource/current_context.h"
#include "runtime/resource/relaxed_capture.h"
#include "runtime/runtime.h"

namespace xlog {

bool Runtime::knows_context(CUcontext context) noexcept {
  bool known = false;
  each_source([&](PlainSource& source) { known = known || source.knows_context(context); });
  each_guard([&](GuardResource& guard) { known = known || guard.knows_context(context); });
  return known;
}

// If something is known of the handle, an earlier context with it has ended in a way that is not intercepted: what is left of that
// one goes before the new one is used. Nobody else has the new handle yet, so sharing the lock is enough.
void Runtime::context_made(CUcontext context) noexcept {
  devices_.context_destroyed(context);
  if (knows_context(context)) {
    ContextEnd(*this, context, "unseen", false).finish(CUDA_SUCCESS);
  }
}

void Runtime::green_made(CUgreenCtx green, CUdevice device) noexcept {
  contexts_.green_made(green, device);
  CUcontext primary = contexts_.primary(device);
  if (primary == nullptr && driver_.cuDevicePrimaryCtxRetain(&primary, device) == CUDA_SUCCESS) {
    driver_.cuDevicePrimaryCtxRelease_v2(device);  // only its handle was wanted: the green context holds it
  }
  contexts_.retained(device, primary);
}

// An event over a green context does not cover what may use its memory, so it is served by the driver alone.
void Runtime::green_named(CUcontext context, CUgreenCtx green) noexcept {
  contexts_.green_named(green, context);
  NativeDevice* target = has_sources() || options_.guards() ? device(devices_.of_context(driver_, context)) : nullptr;
  if (target == nullptr) {
    return;
  }
  if (target->source() != nullptr) {
    target->source()->refuse_context(context);
  }
  if (target->fence() != nullptr) {
    target->fence()->refuse_context(context);
  }
  if (target->guard() != nullptr) {
    target->guard()->refuse_context(context);
  }
}

void Runtime::let_work_finish(CUcontext context) noexcept {
  CUevent event = nullptr;
  CurrentContext current(driver_, context);
  if (context == nullptr || driver_.cuCtxRecordEvent == nullptr || current.result() != CUDA_SUCCESS ||
      driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) != CUDA_SUCCESS) {
    return;
  }
  bool recorded = false;
  {
    CaptureGate::Section section(gate_);
    recorded = section.is_open() && driver_.cuCtxRecordEvent(context, event) == CUDA_SUCCESS;
  }
  RelaxedCapture relaxed(driver_);
  if (recorded) {
    driver_.cuEventSynchronize(event);
  }
  driver_.cuEventDestroy_v2(event);
}

bool Runtime::primary_is_active(CUdevice ordinal) noexcept {
  unsigned flags = 0;
  int active = 1;
  return driver_.cuDevicePrimaryCtxGetState == nullptr ||
         ask_twice([&] { return driver_.cuDevicePrimaryCtxGetState(ordinal, &flags, &active); }) != CUDA_SUCCESS || active != 0;
}

CUresult Runtime::end_context(CUcontext context, std::string_view api, const DriverCall& call) noexcept {
  uint64_t unused = 0;
  ContextEnd end(*this, context, api, true);
  CUresult result = call(unused);
  end.finish(result);
  return result;
}

CUresult Runtime::destroy_context(CUcontext context, std::string_view api, const DriverCall& call) noexcept {
  uint64_t unused = 0;
  if (context == nullptr || contexts_.is_primary(context)) {
    return call(unused);  // the driver refuses to destroy a primary context
  }
  if (knows_context(context)) {
    let_work_finish(context);
  }
  OwnerGuard owner(contexts_.lifetime);
  return end_context(context, api, call);
}

CUresult Runtime::detach_context(CUcontext context, std::string_view api, const DriverCall& call) noexcept {
  if (contexts_.detach_ends(context)) {
    return destroy_context(context, api, call);
  }
  uint64_t unused = 0;
  OwnerGuard owner(contexts_.lifetime);
  CUresult result = call(unused);
  if (result == CUDA_SUCCESS) {
    contexts_.detached(context);
  }
  return result;
}

CUresult Runtime::reset_primary(CUdevice ordinal, std::string_view api, const DriverCall& call) noexcept {
  CUcontext primary = contexts_.primary(ordinal);
  if (knows_context(primary)) {
    let_work_finish(primary);
  }
  OwnerGuard owner(contexts_.lifetime);
  return end_context(primary, api, call);
}

// With the lock owned nobody can retain it again before what ended has been cleaned up. What it holds is taken out before the call,
// because its addresses may be given out again as soon as the driver has them, and put back if it was not the last.
CUresult Runtime::end_primary_hold(CUdevice ordinal, std::string_view api, const DriverCall& call) noexcept {
  uint64_t unused = 0;
  CUcontext primary = contexts_.primary(ordinal);
  bool expected = primary != nullptr && contexts_.may_end(ordinal);
  CUresult result = CUDA_SUCCESS;
  if (expected) {
    ContextEnd end(*this, primary, api, true);
    result = call(unused);
    end.finish(result == CUDA_SUCCESS && primary_is_active(ordinal) ? CUDA_ERROR_NOT_READY : result);
  } else {
    result = call(unused);
    if (result == CUDA_SUCCESS && primary != nullptr && !primary_is_active(ordinal)) {
      ContextEnd(*this, primary, api, false).finish(CUDA_SUCCESS);
    }
  }
  if (result == CUDA_SUCCESS) {
    contexts_.released(ordinal);
  }
  return result;
}

CUresult Runtime::release_primary(CUdevice ordinal, std::string_view api, const DriverCall& call) noexcept {
  CUcontext primary = contexts_.primary(ordinal);
  if (contexts_.may_end(ordinal) && knows_context(primary)) {
    let_work_finish(primary);
  }
  OwnerGuard owner(contexts_.lifetime);
  return end_primary_hold(ordinal, api, call);
}

// Memory that was made while it was current is the primary context's, and stays when that does.
CUresult Runtime::destroy_green(CUgreenCtx green, std::string_view api, const DriverCall& call) noexcept {
  OwnerGuard owner(contexts_.lifetime);
  CUcontext context = nullptr;
  int ordinal = contexts_.find_green(green, context);
  CUcontext primary = contexts_.primary(ordinal);
  if (context != nullptr && primary != nullptr) {
    registry_.take_if(
        [=](DeviceBlock& block) {
          block.context = block.context == context ? primary : block.context;
          return false;
        },
        nullptr, SIZE_MAX);
  }
  CUresult result = CUDA_SUCCESS;
  if (ordinal >= 0) {
    result = end_primary_hold(ordinal, api, call);
  } else {
    uint64_t unused = 0;
    result = call(unused);
  }
  if (result == CUDA_SUCCESS) {
    contexts_.green_ended(green);
    forget_context(context);
  }
  return result;
}

namespace {

void on_thread_end(void*) {
  Runtime* runtime = Runtime::get();
  if (runtime != nullptr) {
    runtime->thread_ends();
  }
}

}  // namespace

// Its per-thread streams end with the thread, and a capture that it has begun there with them.
void Runtime::watch_thread_end() noexcept {
  static constinit std::atomic<int> key_plus_one{0};
  int known = key_plus_one.load(std::memory_order_acquire);
  if (known == 0) {
    pthread_key_t key = 0;
    if (pthread_key_create(&key, on_thread_end) != 0) {
      return;
    }
    if (key_plus_one.compare_exchange_strong(known, static_cast<int>(key) + 1)) {
      known = static_cast<int>(key) + 1;
    } else {
      pthread_key_delete(key);
    }
  }
  pthread_setspecific(static_cast<pthread_key_t>(known - 1), this);
}

}  // namespace xlog
