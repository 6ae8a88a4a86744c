// Waiting for the work of a context, as cuMemFree does: now, by an event over the context, or later, with what is to
// happen then in a queue. cuCtxSynchronize does neither: it loses every capture, and trims the program's own pools.
// Thread-safe.
#pragma once

#include <atomic>

#include "runtime/resource/capture_gate.h"
#include "runtime/resource/context_lanes.h"
#include "runtime/resource/memory_resource.h"

namespace xlog {

// Whether work was waited for, or will be. Nothing may be given out or given back unless it is `done`.
class [[nodiscard]] WaitResult {
 public:
  static constexpr WaitResult done() noexcept { return WaitResult(State::done, CUDA_SUCCESS); }
  // Something captures, so the driver was not asked: the event would end the capture.
  static constexpr WaitResult beside_capture() noexcept { return WaitResult(State::beside_capture, CUDA_SUCCESS); }
  // A driver call failed with this code.
  static constexpr WaitResult from(CUresult code) noexcept {
    return code == CUDA_SUCCESS ? done() : WaitResult(is_about_captures(code) ? State::beside_capture : State::failed, code);
  }
  [[nodiscard]] bool is_done() const noexcept { return state_ == State::done; }
  [[nodiscard]] bool is_beside_capture() const noexcept { return state_ == State::beside_capture; }
  // The work itself failed: cuMemFree, which waits for the same work, would return this code, as does every later call in the context.
  [[nodiscard]] bool is_fault_of_the_work() const noexcept {
    return code_ == CUDA_ERROR_CONTEXT_IS_DESTROYED || code_ == CUDA_ERROR_ASSERT || code_ == CUDA_ERROR_ILLEGAL_ADDRESS ||
           code_ == CUDA_ERROR_LAUNCH_TIMEOUT || (code_ >= CUDA_ERROR_HARDWARE_STACK_ERROR && code_ <= CUDA_ERROR_LAUNCH_FAILED);
  }
  [[nodiscard]] CUresult code() const noexcept { return code_; }

 private:
  enum class State : uint8_t { done, beside_capture, failed };
  constexpr WaitResult(State state, CUresult code) noexcept : state_(state), code_(code) {}
  // A capture that was begun by a function that the gate does not know.
  static constexpr bool is_about_captures(CUresult code) noexcept {
    return code >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED && code <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  State state_;
  CUresult code_;
};

class ContextWork {
 public:
  class Client {
   public:
    // All work that was there when `what` was queued is done. Under the queue's lock; must not block. The lane has no
    // stream when its context is gone.
    virtual void work_is_done(ContextLane& lane, void* what) noexcept = 0;

   protected:
    ~Client() = default;
  };

  ContextWork(const DriverApi& driver, CaptureGate& gate, Client& client) noexcept : driver_(driver), gate_(gate), client_(client) {}

  [[nodiscard]] ContextLanes& lanes() noexcept { return lanes_; }

  // Waits for all work that the context has now.
  WaitResult wait(ContextLane& lane) noexcept;
  // Has work_is_done() called when that work is done, instead of waiting. Never waits.
  WaitResult queue(ContextLane& lane, QueuedFree& free) noexcept;
  // The same while something captures: the event is recorded later.
  void park(ContextLane& lane, QueuedFree& free) noexcept;

  // Settles what is done; with patience, waits for as many bytes as the goal asks for. That wait has no end but the
  // work's: cuMemFree would have waited for it.
  void settle(const ReapGoal& goal) noexcept;
  // Waits for the oldest of this context until no more than `most` bytes are queued, or nothing of it is.
  void settle_down_to(ContextLane& lane, uint64_t most) noexcept;
  // The context has ended: what was queued is done. act(lane) is called behind that.
  template <class Act>
  void close(CUcontext context, Act act) noexcept {
    lanes_.close(context, [&](ContextLane& lane) {
      forget(lane);
      act(lane);
    });
  }

  [[nodiscard]] uint64_t queued_bytes() const noexcept { return queued_.load(std::memory_order_relaxed); }
  // Bytes that were settled and that take_settled() has not yet returned.
  [[nodiscard]] uint64_t settled_bytes() const noexcept { return settled_.load(std::memory_order_relaxed); }
  uint64_t take_settled() noexcept { return settled_.exchange(0, std::memory_order_acq_rel); }

 private:
  class Settled;
  // Bytes that were settled; with `wait`, after waiting for the oldest, and 0 only when nothing is queued or a wait failed.
  uint64_t settle_lane(ContextLane& lane, bool wait) noexcept;
  void forget(ContextLane& lane) noexcept;
  void record_parked(ContextLane& lane) noexcept;

  const DriverApi& driver_;
  CaptureGate& gate_;
  Client& client_;
  ContextLanes lanes_{};
  std::atomic<uint64_t> queued_{0};
  std::atomic<uint64_t> settled_{0};
};

}  // namespace xlog
