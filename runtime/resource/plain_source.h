// Where plain memory comes from when it is not the driver's plain call: the backends `async` and `cache`, under the
// native resource. Memory is handed out valid on every stream, and is not handed out again before all work of its
// context that was there at the free is done. Thread-safe; never throws. Rules: what cuMemFree promises, and captures
// (tests/gpu/captures.expected).
#pragma once

#include <atomic>

#include "runtime/base/options.h"
#include "runtime/resource/capture_gate.h"
#include "runtime/resource/context_lanes.h"
#include "runtime/resource/held_addresses.h"
#include "runtime/resource/memory_resource.h"

namespace xlog {

struct PlainSettings {
  bool ordered = false;                // a free does not wait
  uint64_t most_pending = UINT64_MAX;  // bytes freed and not done; UINT64_MAX: by what is in use
  uint64_t most_pending_by_use = 0;    // then at most this
  uint64_t keep = 0;                   // bytes held back from other processes
  uint64_t limit = UINT64_MAX;         // of the budget: what is in use and what is held stay below it together
  BudgetCount count = BudgetCount::bytes;
};

// Never a block: the driver refuses its free, and refuses it with the capture's code where a capture forbids the call.
inline constexpr CUdeviceptr kNoBlock = 0xdead000;

class PlainSource {
 public:
  PlainSource(const PlainSource&) = delete;
  PlainSource& operator=(const PlainSource&) = delete;

  // False: not served here now, the driver's plain call is to answer. `context` is current.
  virtual bool allocate(CUcontext context, size_t bytes, CUdeviceptr& ptr) noexcept = 0;
  // cuMemFree of a block of this source: its code. `pending`: the memory follows, and take_settled() tells when.
  virtual CUresult free(const DeviceBlock& block, bool& pending) noexcept = 0;
  // The block left by cuMemFreeAsync, in a stream of the program.
  virtual void freed_in_stream(const DeviceBlock& block) noexcept = 0;
  // The program has freed this pointer, and the driver does not know.
  bool holds(CUdeviceptr ptr) noexcept { return held_.contains(ptr); }
  // Gives back to the driver what is held and not in use, after waiting for what is pending. False: there was nothing.
  virtual bool relieve() noexcept = 0;
  // What the driver counts as used although no block of the program is in it.
  virtual uint64_t idle_bytes() noexcept = 0;

  // A context ends, with its blocks of this source: begin before the driver's call (`alive`) or after it, then each
  // block, then finish, with the call's result.
  virtual void begin_context_end(CUcontext context, bool alive) noexcept = 0;
  virtual void end_block(const DeviceBlock& block, bool alive) noexcept = 0;
  virtual void finish_context_end(CUcontext context) noexcept = 0;

  // Settles frees whose work is done; with patience, waits for as many as the goal asks for. That wait has no end but
  // the work's: cuMemFree would have waited for it.
  void settle(const ReapGoal& goal) noexcept;
  // Bytes of pending frees that have become free since the last call.
  uint64_t take_settled() noexcept { return settled_.exchange(0, std::memory_order_acq_rel); }
  [[nodiscard]] uint64_t pending_bytes() const noexcept {
    return pending_.load(std::memory_order_relaxed) + settled_.load(std::memory_order_relaxed);
  }
  void refuse_context(CUcontext context) noexcept { lanes_.refuse(context); }
  // No call of ours is made any more.
  void begin_exit() noexcept { exiting_.store(true, std::memory_order_relaxed); }

 protected:
  PlainSource(const DriverApi& driver, CaptureGate& gate, const PlainSettings& settings) noexcept
      : driver_(driver), gate_(gate), settings_(settings) {}
  ~PlainSource() = default;

  // What becomes of the memory of a pending free; under the queue's lock. The lane has no stream when its context is gone.
  virtual void memory_is_free(ContextLane& lane, void* what) noexcept = 0;

  // Bytes freed and not known to be done.
  [[nodiscard]] uint64_t not_done() const noexcept { return pending_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool is_exiting() const noexcept { return exiting_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t cost(const DeviceBlock& block) const noexcept {
    return settings_.count == BudgetCount::bytes ? block.bytes : block.taken;
  }
  // Waits for all work that the context has now. `capturing`: it could not ask, and nothing was done.
  CUresult wait_for_context(ContextLane& lane, bool& capturing) noexcept;
  // The same while something captures, with the driver's answer to a cuMemFree there.
  CUresult wait_while_capturing() noexcept;
  // Queues a free behind all work that the context has now.
  CUresult free_in_order(ContextLane& lane, uint64_t bytes, void* what, bool& capturing) noexcept;
  // The context is gone; what was queued in its lane is done.
  void close_lane(CUcontext context) noexcept;

  void in_use(uint64_t bytes) noexcept;
  void not_in_use(uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }
  // Bytes that the driver takes for blocks that the program has.
  [[nodiscard]] uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  // What may be held on top of that.
  [[nodiscard]] uint64_t may_keep(uint64_t used) const noexcept;

  const DriverApi& driver_;
  CaptureGate& gate_;
  const PlainSettings settings_;
  ContextLanes lanes_{};
  HeldAddresses held_{};

 private:
  class Settled;
  bool settle_lane(ContextLane& lane, bool wait) noexcept;
  [[nodiscard]] uint64_t most_pending() const noexcept;

  std::atomic<bool> exiting_{false};
  std::atomic<uint64_t> pending_{0};
  std::atomic<uint64_t> settled_{0};
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> most_used_{0};
};

}  // namespace xlog
