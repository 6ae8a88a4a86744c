// Where plain memory comes from when it is not the driver's plain call: the backends `async` and `cache`, under the
// native resource. Memory is handed out valid on every stream, and is not handed out again before all work of its
// context that was there at the free is done. A freed block is kept for the next request of exactly its size in its
// context, within bounds; where blocks come from and go to is the derived class's. Thread-safe; never throws. Rules: what
// cuMemFree promises, and captures (tests/gpu/captures.expected).
#pragma once

#include <atomic>

#include "runtime/base/options.h"
#include "runtime/resource/context_work.h"
#include "runtime/resource/device_ledger.h"
#include "runtime/resource/held_addresses.h"
#include "runtime/resource/kept_blocks.h"

namespace xlog {

struct PlainSettings {
  bool ordered = false;                  // a free does not wait
  uint64_t most_pending = UINT64_MAX;    // bytes freed and not done; UINT64_MAX: by what is in use
  uint64_t most_pending_by_use = 0;      // then at most this
  uint64_t keep = 0;                     // bytes held back from other processes
  uint64_t limit = UINT64_MAX;           // of the budget: what is in use and what is held stay below it together
  const DeviceLedger* ledger = nullptr;  // all that counts against it, of whatever kind
  BudgetCount count = BudgetCount::bytes;
};

// Never a block: the driver refuses its free, and refuses it with the capture's code where a capture forbids the call.
inline constexpr CUdeviceptr kNoBlock = 0xdead000;

class PlainSource : private ContextWork::Client {
 public:
  PlainSource(const PlainSource&) = delete;
  PlainSource& operator=(const PlainSource&) = delete;

  // False: not served here now, the driver's plain call is to answer. `context` is current.
  bool allocate(CUcontext context, size_t bytes, CUdeviceptr& ptr) noexcept;
  // cuMemFree or cuMemFreeAsync of a block of this source: its code. `pending`: the memory becomes free later, and take_settled()
  // returns its bytes then. cuMemFreeAsync never waits; such a block is free when all work that its context has now is done, and
  // nothing of ours is put on the stream (threads that ended with such a free of pool memory on their own stream were seen to hang in
  // the driver).
  CUresult free(const DeviceBlock& block, const FreeRequest& request, bool& pending) noexcept;
  // The program has freed this pointer, and the driver does not know.
  bool holds(CUdeviceptr ptr) noexcept { return held_.contains(ptr); }
  // The program has freed the block that `ptr` lies in, and the driver does not know.
  bool hides(CUdeviceptr ptr) noexcept;
  // Gives back to the driver what is held and not in use, after waiting for what is pending. False: there was nothing.
  bool relieve() noexcept;
  // What the driver counts as used although no block of the program is in it.
  uint64_t idle_bytes() noexcept { return idle(); }

  // A block ended with its context, whose work is done: the driver has destroyed it.
  virtual void end_block(const DeviceBlock& block) noexcept = 0;
  // The driver is about to destroy the context, and with it what this source keeps of it: those addresses may belong to other blocks
  // as soon as it has. Then one of the other two, while no other context can be given the handle: it refused, or it has done so.
  void begin_context_end(CUcontext context) noexcept;
  void context_stays(CUcontext context) noexcept;
  void context_ended(CUcontext context) noexcept;
  [[nodiscard]] bool knows_context(CUcontext context) noexcept { return work_.lanes().knows(context); }

  void settle(const ReapGoal& goal) noexcept;
  // Bytes of pending frees that have become free since the last call.
  uint64_t take_settled() noexcept { return work_.take_settled(); }
  [[nodiscard]] uint64_t settled_bytes() const noexcept { return work_.settled_bytes(); }
  [[nodiscard]] uint64_t pending_bytes() const noexcept { return work_.queued_bytes() + work_.settled_bytes(); }
  // Such a context is left to the driver.
  void refuse_context(CUcontext context) noexcept { work_.lanes().refuse(context); }

 protected:
  PlainSource(const DriverApi& driver, CaptureGate& gate, const PlainSettings& settings, bool with_stream) noexcept
      : driver_(driver), settings_(settings), gate_(gate), work_(driver, gate, *this), with_stream_(with_stream) {}
  ~PlainSource() = default;

  // Nothing is served for now.
  virtual bool declines() noexcept = 0;
  // A block from the driver, in the relaxed capture mode.
  virtual CUresult make(ContextLane& lane, size_t bytes, CUdeviceptr& ptr) noexcept = 0;
  // Gives one back whose work is done, in the relaxed capture mode. No lane: its context is gone, or is unknown.
  virtual void unmake(ContextLane* lane, CUdeviceptr ptr, size_t bytes) noexcept = 0;
  // The same for the program's own free, whose work was waited for: the code that the program gets.
  virtual CUresult give_back(CUdeviceptr ptr) noexcept = 0;
  // Most that is kept block by block.
  [[nodiscard]] virtual uint64_t most_kept() noexcept = 0;
  // A block of that size, or one that was shared, is not kept but given back; then unmake() must not block.
  [[nodiscard]] virtual bool keeps(size_t taken, bool shared) noexcept = 0;
  // Such a block is freed by the driver's own call, in the program's own way.
  [[nodiscard]] virtual bool leaves_to_driver(const DeviceBlock& block) noexcept = 0;
  virtual CUresult free_by_driver(const DeviceBlock& block, const FreeRequest& request) noexcept = 0;
  // cuMemFree of a block by waiting for its context's work and giving it back, where no event could be recorded.
  virtual CUresult free_after_waiting(const DeviceBlock& block) noexcept;
  // Gives back what could not be given back before; some context may be current, or none.
  virtual void release_orphans() noexcept {}
  // The driver frees what is kept together with its context.
  [[nodiscard]] virtual bool ends_with_context() const noexcept { return false; }
  // The block that the driver's range at `base` stands for.
  virtual CUdeviceptr block_at(CUdeviceptr base) noexcept { return base; }
  // The rest of relieve(), and whether it gave anything back.
  virtual bool release_idle() noexcept = 0;
  virtual void keep_within_bounds() noexcept = 0;
  virtual uint64_t idle() noexcept = 0;

  // Bytes that the driver takes for blocks that the program has, and for those whose work is not done.
  [[nodiscard]] uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t not_done() const noexcept { return not_done_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t kept() const noexcept { return kept_.bytes(); }
  // What may be held on top of `used`.
  [[nodiscard]] uint64_t may_keep(uint64_t used) const noexcept;
  [[nodiscard]] ContextWork& work() noexcept { return work_; }
  // Waits as cuMemFree of a block of that context would, in whatever thread: refused where a capture forbids that call.
  CUresult wait_as_plain_free(CUcontext context) noexcept;
  // Gives back the oldest of what is kept, down to `most` bytes.
  void shrink(uint64_t most) noexcept;
  // The program has freed the pointer, or its context has ended, and the driver does not know: until unhold().
  void hold(CUdeviceptr ptr, size_t bytes) noexcept { held_.add(ptr, bytes); }
  void unhold(CUdeviceptr ptr) noexcept { held_.remove(ptr); }
  void in_use(uint64_t bytes) noexcept;
  void not_in_use(uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  const DriverApi& driver_;
  const PlainSettings settings_;

 private:
  void work_is_done(ContextLane& lane, void* what) noexcept final;
  // Of a lane that is suspended.
  void hold_all_of(ContextLane& lane, bool on) noexcept;
  CUdeviceptr take_kept(CUcontext context, size_t bytes) noexcept;
  CUresult ask_about_stream(const StreamArg& stream) noexcept;
  CUresult free_here(const DeviceBlock& block, const FreeRequest& request, bool& pending) noexcept;
  WaitResult free_later(ContextLane& lane, KeptBlock* node, const FreeRequest& request) noexcept;
  void keep(ContextLane& lane, KeptBlock* block) noexcept;
  CUresult make_or_relieve(CUcontext context, size_t bytes, CUdeviceptr& ptr) noexcept;
  [[nodiscard]] uint64_t most_pending() const noexcept;
  [[nodiscard]] uint64_t cost(const DeviceBlock& block) const noexcept {
    return settings_.count == BudgetCount::bytes ? block.bytes : block.taken;
  }

  CaptureGate& gate_;
  ContextWork work_;
  const bool with_stream_;
  HeldAddresses held_{};
  KeptBlocks kept_{};
  std::atomic<uint64_t> not_done_{0};
  std::atomic<uint64_t> leaving_{0};  // freed, and in the ledger until free() has returned
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> most_used_{0};
};

}  // namespace xlog
