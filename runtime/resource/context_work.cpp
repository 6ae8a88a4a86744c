#include "runtime/resource/context_work.h"

#include "runtime/resource/relaxed_capture.h"

namespace xlog {

class ContextWork::Settled final : public FreeQueue::Done {
 public:
  Settled(ContextWork& work, ContextLane& lane) noexcept : work_(work), lane_(lane) {}
  void done(const QueuedFree& free) noexcept override {
    uint64_t bytes = free.bytes;
    work_.settled_.fetch_add(bytes, std::memory_order_acq_rel);  // first: what is pending must not seem less than it is
    work_.queued_.fetch_sub(bytes, std::memory_order_acq_rel);
    work_.client_.work_is_done(lane_, free.what);
    bytes_ += bytes;
  }
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_; }

 private:
  uint64_t bytes_ = 0;
  ContextWork& work_;
  ContextLane& lane_;
};

WaitResult ContextWork::wait(ContextLane& lane) noexcept {
  CUcontext context = lane.context.load(std::memory_order_relaxed);
  CUevent event = nullptr;
  if (gate_.is_capturing()) {
    return WaitResult::beside_capture();
  }
  WaitResult result = WaitResult::from(lane.events.take(driver_, context, event));
  if (!result.is_done()) {
    return result;
  }
  {
    CaptureGate::Section section(gate_);
    result = section.is_open() ? WaitResult::from(driver_.cuCtxRecordEvent(context, event)) : WaitResult::beside_capture();
  }
  if (result.is_done()) {
    RelaxedCapture relaxed(driver_);
    result = WaitResult::from(driver_.cuEventSynchronize(event));
  }
  lane.events.give(driver_, event);
  return result;
}

void ContextWork::record_parked(ContextLane& lane) noexcept {
  if (lane.frees.has_parked()) {
    CaptureGate::Section section(gate_);
    if (section.is_open()) {
      static_cast<void>(lane.frees.add_parked(driver_, lane.context.load(std::memory_order_relaxed)));  // what failed stays parked
    }
  }
}

uint64_t ContextWork::settle_lane(ContextLane& lane, bool wait) noexcept {
  constexpr int kTries = 8;  // another thread may settle what was waited for, or the event may be recorded again meanwhile
  Settled settled(*this, lane);
  record_parked(lane);
  CUevent oldest = nullptr;
  for (int i = 0; i < kTries; ++i) {
    oldest = wait ? lane.frees.oldest() : nullptr;
    if (oldest != nullptr && driver_.cuEventSynchronize(oldest) != CUDA_SUCCESS) {
      break;
    }
    lane.frees.settle(driver_, settled);
    if (oldest == nullptr || settled.bytes() != 0) {
      break;
    }
  }
  return settled.bytes();
}

WaitResult ContextWork::queue(ContextLane& lane, QueuedFree& free) noexcept {
  RelaxedCapture relaxed(driver_);
  uint64_t bytes = free.bytes;
  queued_.fetch_add(bytes, std::memory_order_relaxed);
  WaitResult result = WaitResult::beside_capture();
  {
    CaptureGate::Section section(gate_);
    if (section.is_open()) {
      result = WaitResult::from(lane.frees.add(driver_, lane.context.load(std::memory_order_relaxed), free));
    }
  }
  if (!result.is_done()) {
    queued_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  return result;
}

void ContextWork::park(ContextLane& lane, QueuedFree& free) noexcept {
  queued_.fetch_add(free.bytes, std::memory_order_relaxed);
  lane.frees.park(free);
}

void ContextWork::settle_down_to(ContextLane& lane, uint64_t most) noexcept {
  RelaxedCapture relaxed(driver_);
  for (bool wait = false; queued_bytes() > most; wait = true) {
    if (settle_lane(lane, wait) == 0 && wait) {
      break;  // the rest is other contexts', or cannot be waited for now
    }
  }
}

void ContextWork::settle(const ReapGoal& goal) noexcept {
  if (queued_bytes() == 0) {
    return;
  }
  RelaxedCapture relaxed(driver_);
  lanes_.each([&](ContextLane& lane) {
    uint64_t settled = settle_lane(lane, false);
    for (uint64_t more = 1; goal.patience_ns != 0 && settled < goal.bytes && more != 0; settled += more) {
      more = settle_lane(lane, true);
    }
  });
}

void ContextWork::forget(ContextLane& lane) noexcept {
  Settled settled(*this, lane);
  lane.frees.forget(settled);
}

}  // namespace xlog
