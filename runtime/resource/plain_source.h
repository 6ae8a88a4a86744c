// Where plain memory comes from when it is not the driver's plain call: the backends `async` and `cache`, under the
// native resource. Memory is handed out valid on every stream, and is not handed out again before all work of its
// context that was there at the free is done. A freed block is kept for the next request of exactly its size in its
// context, within bounds; where blocks come from and go to is the derived class's. Thread-safe; never throws. Rules: what
// cuMemFree promises, and captures (tests/gpu/captures.expected).
#pragma once

#include <atomic>

#include "runtime/base/options.h"
#include "runtime/resource/context_work.h"
#include "runtime/resource/held_addresses.h"
#include "runtime/resource/kept_blocks.h"

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

class PlainSource : private ContextWork::Client {
 public:
  PlainSource(const PlainSource&) = delete;
  PlainSource& operator=(const PlainSource&) = delete;

  // False: not served here now, the driver's plain call is to answer. `context` is current.
  bool allocate(CUcontext context, size_t bytes, CUdeviceptr& ptr) noexcept;
  // cuMemFree or cuMemFreeAsync of a block of this source: its code. `pending`: the memory follows, and take_settled()
  // tells when. In the order of a stream is here: behind all work that the context has, and nothing of ours is put on the
  // stream (threads that ended with such a free of pool memory on their own stream were seen to hang in the driver).
  CUresult free(const DeviceBlock& block, const FreeRequest& request, bool& pending) noexcept;
  // The program has freed this pointer, and the driver does not know.
  bool holds(CUdeviceptr ptr) noexcept { return held_.contains(ptr); }
  // Gives back to the driver what is held and not in use, after waiting for what is pending. False: there was nothing.
  bool relieve() noexcept;
  // What the driver counts as used although no block of the program is in it.
  uint64_t idle_bytes() noexcept { return is_exiting() ? 0 : idle(); }

  // A context ends, with its blocks of this source: begin before the driver's call (`alive`) or after it, then each
  // block, then finish when the context is gone.
  virtual void begin_context_end(CUcontext context, bool alive) noexcept = 0;
  virtual void end_block(const DeviceBlock& block, bool alive) noexcept = 0;
  void finish_context_end(CUcontext context) noexcept;

  void settle(const ReapGoal& goal) noexcept;
  // Bytes of pending frees that have become free since the last call.
  uint64_t take_settled() noexcept { return work_.take_settled(); }
  [[nodiscard]] uint64_t settled_bytes() const noexcept { return work_.settled_bytes(); }
  [[nodiscard]] uint64_t pending_bytes() const noexcept { return work_.queued_bytes() + work_.settled_bytes(); }
  // Such a context is left to the driver.
  void refuse_context(CUcontext context) noexcept { work_.lanes().refuse(context); }
  // No call of ours is made any more.
  void begin_exit() noexcept { exiting_.store(true, std::memory_order_relaxed); }

 protected:
  PlainSource(const DriverApi& driver, CaptureGate& gate, const PlainSettings& settings, bool with_stream) noexcept
      : driver_(driver), settings_(settings), gate_(gate), work_(driver, gate, *this), with_stream_(with_stream) {}
  ~PlainSource() = default;

  // Nothing is served for now.
  virtual bool declines() noexcept = 0;
  // A block from the driver, in the relaxed capture mode.
  virtual CUresult make(ContextLane& lane, size_t bytes, CUdeviceptr& ptr) noexcept = 0;
  // Gives one back whose work is done, in the relaxed capture mode. No lane, or no stream: its context is gone.
  virtual void unmake(ContextLane* lane, CUdeviceptr ptr) noexcept = 0;
  // cuMemFree of a block while something captures: the driver's answer to that.
  virtual CUresult free_while_capturing(ContextLane& lane, CUdeviceptr ptr) noexcept = 0;
  // Most that is kept block by block.
  [[nodiscard]] virtual uint64_t most_kept() noexcept = 0;
  // A block of that size, or one that was shared, is not kept but given back; then unmake() must not block.
  [[nodiscard]] virtual bool keeps(size_t taken, bool shared) noexcept = 0;
  // The block is freed as if it were the driver's.
  [[nodiscard]] virtual bool leaves_to_driver(const DeviceBlock& block) noexcept = 0;
  // The block is freed by a driver call, now.
  virtual CUresult free_by_driver(const DeviceBlock& block, const FreeRequest& request) noexcept;
  // The rest of relieve(), and whether it gave anything back.
  virtual bool release_idle() noexcept = 0;
  virtual void keep_within_bounds() noexcept = 0;
  virtual uint64_t idle() noexcept = 0;

  [[nodiscard]] bool is_exiting() const noexcept { return exiting_.load(std::memory_order_relaxed); }
  // Bytes that the driver takes for blocks that the program has, and for those whose work is not done.
  [[nodiscard]] uint64_t used() const noexcept { return used_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t not_done() const noexcept { return not_done_.load(std::memory_order_relaxed); }
  [[nodiscard]] uint64_t kept() const noexcept { return kept_.bytes(); }
  // What may be held on top of `used`.
  [[nodiscard]] uint64_t may_keep(uint64_t used) const noexcept;
  [[nodiscard]] ContextWork& work() noexcept { return work_; }
  // cuMemFree while something captures, but for the free: refused where the capture forbids it, else it waits as that does.
  CUresult wait_beside_captures() noexcept;
  // Gives back the oldest of what is kept, down to `most` bytes.
  void shrink(uint64_t most) noexcept;
  // Gives back what is kept of a context; without a lane it is gone.
  void give_back_kept(CUcontext context, ContextLane* lane) noexcept;
  void in_use(uint64_t bytes) noexcept;
  void not_in_use(uint64_t bytes) noexcept { used_.fetch_sub(bytes, std::memory_order_relaxed); }

  const DriverApi& driver_;
  const PlainSettings settings_;

 private:
  void work_is_done(ContextLane& lane, void* what) noexcept final;
  void keep(ContextLane* lane, KeptBlock* block) noexcept;
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
  std::atomic<bool> exiting_{false};
  std::atomic<uint64_t> not_done_{0};
  std::atomic<uint64_t> used_{0};
  std::atomic<uint64_t> most_used_{0};
};

}  // namespace xlog
