#include "runtime/resource/plain_source.h"

#include "runtime/resource/relaxed_capture.h"

namespace xlog {

namespace {

// Frees of so little never make the next one wait.
constexpr uint64_t kLeastPending = 256 << 20;

}  // namespace

class PlainSource::Settled final : public FreeQueue::Done {
 public:
  Settled(PlainSource& source, ContextLane& lane) noexcept : source_(source), lane_(lane) {}
  void done(uint64_t bytes, void* what) noexcept override {
    source_.pending_.fetch_sub(bytes, std::memory_order_relaxed);
    source_.settled_.fetch_add(bytes, std::memory_order_acq_rel);
    source_.memory_is_free(lane_, what);
  }

 private:
  PlainSource& source_;
  ContextLane& lane_;
};

CUresult PlainSource::wait_for_context(ContextLane& lane, bool& capturing) noexcept {
  CUcontext context = lane.context.load(std::memory_order_relaxed);
  CUevent event = nullptr;
  capturing = gate_.is_capturing();
  CUresult result = capturing ? CUDA_SUCCESS : lane.events.take(driver_, context, event);
  if (capturing || result != CUDA_SUCCESS) {
    return result;
  }
  {
    CaptureGate::Section section(gate_);
    capturing = !section.is_open();
    result = capturing ? CUDA_SUCCESS : driver_.cuCtxRecordEvent(context, event);
  }
  if (!capturing && result == CUDA_SUCCESS) {
    RelaxedCapture relaxed(driver_);
    result = driver_.cuEventSynchronize(event);
  }
  lane.events.give(driver_, event);
  return result;
}

// The free of no block tells whether the program may free here (and loses its capture if it may not); a plain block of
// our own, freed in the relaxed mode, then waits as the program's would.
CUresult PlainSource::wait_while_capturing() noexcept {
  CUresult allowed = driver_.cuMemFree_v2(kNoBlock);
  if (allowed != CUDA_ERROR_INVALID_VALUE) {
    return allowed;
  }
  RelaxedCapture relaxed(driver_);
  CUdeviceptr probe = 0;
  CUresult result = driver_.cuMemAlloc_v2(&probe, 1);
  if (result == CUDA_ERROR_OUT_OF_MEMORY && relieve()) {
    result = driver_.cuMemAlloc_v2(&probe, 1);
  }
  return result == CUDA_SUCCESS ? driver_.cuMemFree_v2(probe) : result;
}

bool PlainSource::settle_lane(ContextLane& lane, bool wait) noexcept {
  CUevent oldest = wait ? lane.frees.oldest() : nullptr;
  if (oldest != nullptr) {
    driver_.cuEventSynchronize(oldest);
  }
  Settled settled(*this, lane);
  lane.frees.settle(driver_, settled);
  return oldest != nullptr;
}

uint64_t PlainSource::most_pending() const noexcept {
  if (settings_.most_pending != UINT64_MAX) {
    return settings_.most_pending;
  }
  uint64_t by_use = most_used_.load(std::memory_order_relaxed) / 4;
  by_use = by_use < kLeastPending ? kLeastPending : by_use;
  return by_use < settings_.most_pending_by_use ? by_use : settings_.most_pending_by_use;
}

CUresult PlainSource::free_in_order(ContextLane& lane, uint64_t bytes, void* what, bool& capturing) noexcept {
  CUcontext context = lane.context.load(std::memory_order_relaxed);
  CUresult result = CUDA_SUCCESS;
  RelaxedCapture relaxed(driver_);
  for (auto added = FreeQueue::Added::full; added == FreeQueue::Added::full;) {
    pending_.fetch_add(bytes, std::memory_order_relaxed);
    {
      CaptureGate::Section section(gate_);
      capturing = !section.is_open();
      added = capturing ? FreeQueue::Added::failed : lane.frees.add(driver_, context, bytes, what, result);
    }
    if (added != FreeQueue::Added::queued) {
      pending_.fetch_sub(bytes, std::memory_order_relaxed);
    }
    if (added == FreeQueue::Added::failed) {
      return result;
    }
    if (added == FreeQueue::Added::full) {
      settle_lane(lane, true);
    }
  }
  uint64_t most = most_pending();
  for (bool wait = false; pending_.load(std::memory_order_relaxed) > most; wait = true) {
    if (!settle_lane(lane, wait) && wait) {
      break;  // the rest is other contexts'
    }
  }
  return CUDA_SUCCESS;
}

void PlainSource::close_lane(CUcontext context) noexcept {
  lanes_.close(context, [this](ContextLane& lane) {
    Settled settled(*this, lane);
    lane.frees.forget(settled);
  });
}

void PlainSource::settle(const ReapGoal& goal) noexcept {
  if (pending_.load(std::memory_order_relaxed) == 0 || is_exiting()) {
    return;
  }
  RelaxedCapture relaxed(driver_);
  lanes_.each([&](ContextLane& lane) {
    settle_lane(lane, false);
    while (goal.patience_ns != 0 && settled_.load(std::memory_order_relaxed) < goal.bytes && settle_lane(lane, true)) {
    }
  });
}

void PlainSource::in_use(uint64_t bytes) noexcept {
  uint64_t now = used_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  uint64_t most = most_used_.load(std::memory_order_relaxed);
  while (now > most && !most_used_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

uint64_t PlainSource::may_keep(uint64_t used) const noexcept {
  uint64_t below_limit = used < settings_.limit ? settings_.limit - used : 0;
  return settings_.keep < below_limit ? settings_.keep : below_limit;
}

}  // namespace xlog
