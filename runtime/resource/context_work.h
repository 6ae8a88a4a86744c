// Waiting for the work of a context, as cuMemFree does: now, by an event over the context, or later, with what is to
// happen then in a queue. cuCtxSynchronize does neither: it loses every capture, and trims the program's own pools.
// Thread-safe.
#pragma once

#include <atomic>

#include "runtime/resource/capture_gate.h"
#include "runtime/resource/context_lanes.h"
#include "runtime/resource/memory_resource.h"

namespace xlog {

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

  // Waits for all work that the context has now. `capturing`: something captures, so nothing was asked.
  CUresult wait(ContextLane& lane, bool& capturing) noexcept;
  // Tells the client when it is done instead. Above `most` bytes in the queue it waits for the oldest.
  CUresult queue(ContextLane& lane, uint64_t bytes, void* what, uint64_t most, bool& capturing) noexcept;

  // Settles what is done; with patience, waits for as many bytes as the goal asks for. That wait has no end but the
  // work's: cuMemFree would have waited for it.
  void settle(const ReapGoal& goal) noexcept;
  // The context has ended: what was queued is done.
  void close(CUcontext context) noexcept;

  [[nodiscard]] uint64_t queued_bytes() const noexcept { return queued_.load(std::memory_order_relaxed); }
  // Bytes that were settled and not yet told.
  [[nodiscard]] uint64_t settled_bytes() const noexcept { return settled_.load(std::memory_order_relaxed); }
  uint64_t take_settled() noexcept { return settled_.exchange(0, std::memory_order_acq_rel); }

 private:
  class Settled;
  // Bytes that were settled; with `wait`, after waiting for the oldest, and 0 only when nothing is queued.
  uint64_t settle_lane(ContextLane& lane, bool wait) noexcept;

  const DriverApi& driver_;
  CaptureGate& gate_;
  Client& client_;
  ContextLanes lanes_{};
  std::atomic<uint64_t> queued_{0};
  std::atomic<uint64_t> settled_{0};
};

}  // namespace xlog
