#include "runtime/resource/context_work.h"

#include "runtime/resource/relaxed_capture.h"

namespace xlog {

class ContextWork::Settled final : public FreeQueue::Done {
 public:
  Settled(ContextWork& work, ContextLane& lane) noexcept : work_(work), lane_(lane) {}
  void done(uint64_t bytes, void* what) noexcept override {
    work_.settled_.fetch_add(bytes, std::memory_order_acq_rel);  // first: what is pending must not seem less than it is
    work_.queued_.fetch_sub(bytes, std::memory_order_acq_rel);
    work_.client_.work_is_done(lane_, what);
    bytes_ += bytes;
  }
  [[nodiscard]] uint64_t bytes() const noexcept { return bytes_; }

 private:
  uint64_t bytes_ = 0;
  ContextWork& work_;
  ContextLane& lane_;
};

CUresult ContextWork::wait(ContextLane& lane, bool& capturing) noexcept {
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

uint64_t ContextWork::settle_lane(ContextLane& lane, bool wait) noexcept {
  Settled settled(*this, lane);
  for (;;) {
    CUevent oldest = wait ? lane.frees.oldest() : nullptr;
    if (oldest != nullptr) {
      driver_.cuEventSynchronize(oldest);
    }
    lane.frees.settle(driver_, settled);
    if (oldest == nullptr || settled.bytes() != 0) {
      return settled.bytes();  // else another thread settled it, or the event was recorded anew meanwhile
    }
  }
}

CUresult ContextWork::queue(ContextLane& lane, uint64_t bytes, void* what, uint64_t most, bool& capturing) noexcept {
  CUcontext context = lane.context.load(std::memory_order_relaxed);
  CUresult result = CUDA_SUCCESS;
  RelaxedCapture relaxed(driver_);
  for (auto added = FreeQueue::Added::full; added == FreeQueue::Added::full;) {
    queued_.fetch_add(bytes, std::memory_order_relaxed);
    {
      CaptureGate::Section section(gate_);
      capturing = !section.is_open();
      added = capturing ? FreeQueue::Added::failed : lane.frees.add(driver_, context, bytes, what, result);
    }
    if (added != FreeQueue::Added::queued) {
      queued_.fetch_sub(bytes, std::memory_order_relaxed);
    }
    if (added == FreeQueue::Added::failed) {
      return result;
    }
    if (added == FreeQueue::Added::full) {
      settle_lane(lane, true);
    }
  }
  for (bool wait = false; queued_bytes() > most; wait = true) {
    if (settle_lane(lane, wait) == 0 && wait) {
      break;  // the rest is other contexts'
    }
  }
  return CUDA_SUCCESS;
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

void ContextWork::close(CUcontext context) noexcept {
  lanes_.close(context, [this](ContextLane& lane) {
    Settled settled(*this, lane);
    lane.frees.forget(settled);
  });
}

}  // namespace xlog
