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

std::atomic<ContextLane*>& ContextLanes::head(CUcontext context) noexcept {
  uint64_t hash = (reinterpret_cast<uint64_t>(context) >> 4) * 0x9E3779B97F4A7C15ULL;
  return heads_[hash >> 58 & (kHeads - 1)];
}

ContextLane* ContextLanes::search(CUcontext context) noexcept {
  ContextLane* lane = context != nullptr ? head(context).load(std::memory_order_acquire) : nullptr;
  while (lane != nullptr && lane->context.load(std::memory_order_acquire) != context) {
    lane = lane->next;
  }
  return lane;
}

ContextLanes::Use ContextLanes::find(CUcontext context) noexcept {
  ContextLane* lane = search(context);
  if (lane == nullptr) {
    return Use(nullptr);
  }
  lane->users.fetch_add(1, std::memory_order_seq_cst);
  Use use(lane);
  bool still = lane->context.load(std::memory_order_seq_cst) == context && !lane->refused;
  return still ? static_cast<Use&&>(use) : Use(nullptr);
}

bool ContextLanes::knows(CUcontext context) noexcept { return search(context) != nullptr; }

ContextLane* ContextLanes::claim(CUcontext context) noexcept {
  std::atomic<ContextLane*>& first = head(context);
  ContextLane* lane = first.load(std::memory_order_relaxed);
  auto is_taken = [](const ContextLane& each) {
    return each.context.load(std::memory_order_relaxed) != nullptr || each.ending != nullptr ||
           each.users.load(std::memory_order_seq_cst) != 0;
  };
  while (lane != nullptr && is_taken(*lane)) {
    lane = lane->next;
  }
  if (lane == nullptr) {
    lane = static_cast<ContextLane*>(map_state(sizeof(ContextLane)));
    if (lane == nullptr) {
      return nullptr;
    }
    lane->next = first.load(std::memory_order_relaxed);
    first.store(lane, std::memory_order_release);
  }
  lane->ended = false;
  lane->incarnation.store(incarnations_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return lane;
}

ContextLanes::Use ContextLanes::open(const DriverApi& driver, CUcontext context, bool with_stream) noexcept {
  Use known = find(context);
  if (known || context == nullptr || knows(context)) {
    return known;
  }
  CUstream made = nullptr;
  if (with_stream && make_stream(driver, made) != CUDA_SUCCESS) {
    return known;
  }
  {
    LockGuard guard(lock_);
    ContextLane* lane = knows(context) ? nullptr : claim(context);
    if (lane != nullptr) {
      lane->stream = made;
      lane->context.store(context, std::memory_order_seq_cst);
      made = nullptr;
    }
  }
  if (made != nullptr) {
    driver.cuStreamDestroy_v2(made);
  }
  return find(context);
}

void ContextLanes::wait_for_users(const ContextLane& lane) noexcept {
  uint64_t start = steady_time();
  while (lane.users.load(std::memory_order_seq_cst) != 0 && steady_time() - start < kPatience) {
    sched_yield();
  }
}

void ContextLanes::refuse(CUcontext context) noexcept {
  LockGuard guard(lock_);
  ContextLane* lane = search(context);
  lane = lane == nullptr && context != nullptr ? claim(context) : lane;
  if (lane != nullptr) {
    lane->refused = true;
    lane->context.store(context, std::memory_order_seq_cst);
  }
}

}  // namespace xlog
