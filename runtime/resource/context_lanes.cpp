#include "runtime/resource/context_lanes.h"

#include <sched.h>

#include "runtime/base/memory_map.h"
#include "runtime/base/thread.h"

namespace xlog {

namespace {

// A thread that is still in a call when its context ends breaks the driver's own rule; it gets this long to leave.
constexpr uint64_t kPatience = 1'000'000'000;

// Of the highest priority: streams of one priority share hardware queues, and what stands in one behind the program's
// work is not reached before it.
CUresult make_stream(const DriverApi& driver, CUstream& out) noexcept {
  int least = 0;
  int greatest = 0;
  bool ranked = driver.cuCtxGetStreamPriorityRange != nullptr && driver.cuStreamCreateWithPriority != nullptr &&
                driver.cuCtxGetStreamPriorityRange(&least, &greatest) == CUDA_SUCCESS && greatest != least;
  return ranked ? driver.cuStreamCreateWithPriority(&out, CU_STREAM_NON_BLOCKING, greatest)
                : driver.cuStreamCreate(&out, CU_STREAM_NON_BLOCKING);
}

}  // namespace

ContextLanes::Use ContextLanes::find(CUcontext context) noexcept {
  for (auto& each : lanes_) {
    ContextLane* lane = each.load(std::memory_order_acquire);
    if (lane == nullptr || context == nullptr) {
      break;  // they are filled from the front
    }
    if (lane->context.load(std::memory_order_acquire) == context) {
      lane->users.fetch_add(1, std::memory_order_acq_rel);
      Use use(lane);
      if (lane->context.load(std::memory_order_acquire) == context) {
        return use;
      }
    }
  }
  return Use(nullptr);
}

ContextLane* ContextLanes::free_lane() noexcept {
  for (auto& each : lanes_) {
    ContextLane* lane = each.load(std::memory_order_relaxed);
    if (lane == nullptr) {
      lane = static_cast<ContextLane*>(map_state(sizeof(ContextLane)));
      each.store(lane, std::memory_order_release);
      return lane;
    }
    if (lane->context.load(std::memory_order_relaxed) == nullptr && lane->users.load(std::memory_order_acquire) == 0) {
      return lane;
    }
  }
  return nullptr;
}

ContextLanes::Use ContextLanes::open(const DriverApi& driver, CUcontext context, bool with_stream) noexcept {
  Use known = find(context);
  if (known || context == nullptr || is_refused(context)) {
    return known;
  }
  CUstream made = nullptr;
  if (with_stream && make_stream(driver, made) != CUDA_SUCCESS) {
    return known;
  }
  {
    LockGuard guard(lock_);
    bool there = false;
    for (auto& each : lanes_) {
      ContextLane* lane = each.load(std::memory_order_relaxed);
      there = there || (lane != nullptr && lane->context.load(std::memory_order_relaxed) == context);
    }
    ContextLane* lane = there ? nullptr : free_lane();
    if (lane != nullptr) {
      lane->stream = made;
      lane->context.store(context, std::memory_order_release);
      made = nullptr;
    }
  }
  if (made != nullptr) {
    driver.cuStreamDestroy_v2(made);
  }
  return find(context);
}

ContextLane* ContextLanes::take(CUcontext context) noexcept {
  LockGuard guard(lock_);
  for (CUcontext& each : refused_) {
    each = each == context ? nullptr : each;
  }
  for (auto& each : lanes_) {
    ContextLane* lane = each.load(std::memory_order_relaxed);
    if (lane == nullptr || context == nullptr || lane->context.load(std::memory_order_relaxed) != context) {
      continue;
    }
    lane->users.fetch_add(1, std::memory_order_acq_rel);  // nobody else takes it meanwhile
    lane->context.store(nullptr, std::memory_order_release);
    uint64_t start = steady_time();
    while (lane->users.load(std::memory_order_acquire) != 1 && steady_time() - start < kPatience) {
      sched_yield();
    }
    lane->stream = nullptr;
    lane->events.forget();
    return lane;
  }
  return nullptr;
}

void ContextLanes::put(ContextLane* lane) noexcept { lane->users.fetch_sub(1, std::memory_order_acq_rel); }

bool ContextLanes::is_refused(CUcontext context) noexcept {
  if (refusals_.load(std::memory_order_acquire) == 0) {
    return false;
  }
  LockGuard guard(lock_);
  for (CUcontext each : refused_) {
    if (each == context) {
      return true;
    }
  }
  return false;
}

void ContextLanes::refuse(CUcontext context) noexcept {
  LockGuard guard(lock_);
  refused_[refusals_.load(std::memory_order_relaxed) % kRefused] = context;
  refusals_.fetch_add(1, std::memory_order_release);
}

}  // namespace xlog
