// Checks of live blocks' zones behind the launches of kernels (XLOG_GUARD_CHECK=launch): a kernel of ours is put into the
// stream behind the program's, and what it says is looked at when it has arrived, at some later call; the host never waits.
// Only plain blocks of the stream's context whose pattern is known to be there, outside captures. Thread-safe.
#pragma once

#include "runtime/base/diagnostics.h"
#include "runtime/guard/check_kernel.h"
#include "runtime/guard/finding.h"
#include "runtime/guard/guard_memory.h"
#include "runtime/guard/launches.h"

namespace xlog {

class LaunchChecks {
 public:
  LaunchChecks(const DriverApi& driver, CaptureGate& gate, GuardMemory& memory, GuardRecords& records, FindingReporter& reporter,
               uint32_t every) noexcept
      : driver_(driver), gate_(gate), memory_(memory), records_(records), reporter_(reporter), every_(every) {}

  // Before the program's first allocation or launch in the context, which is current: to load a kernel waits for those of the
  // context that run, and one that runs may wait for what the program does next.
  void prepare(CUcontext context) noexcept;
  // The program launched this into the stream; `context` is current, and the stream's.
  void launched(const Launch& launch, const StreamArg& stream, CUcontext context) noexcept;
  // Looks at what has arrived. `leaving`: a record that is no longer among the live, whose block is not freed yet.
  void settle(GuardRecord* leaving) noexcept;
  // No check is being put together: one that was knows nothing of a block that left the live before this.
  void wait_for_preparation() noexcept;
  // All that was put into streams of the context is done: for a free that does not wait for the context's work itself. Not done: a
  // check may still read the zone, so the block must not be freed.
  WaitResult finish(CUcontext context) noexcept;
  // As those of OrderedChecks.
  void suspend(CUcontext context) noexcept;
  void resume(CUcontext context) noexcept;
  void context_ended(CUcontext context) noexcept;

 private:
  static constexpr size_t kSlots = 32;
  static constexpr size_t kMostZones = 2048;  // a check; more live blocks are taken in turn

  enum class State : uint8_t { free, filling, waiting, looking, blind, suspended };  // as in OrderedChecks
  struct Slot {
    std::atomic<State> state;
    std::atomic<uint64_t> number;  // of the launch: to be read by whoever does not have the slot
    CUevent event;
    uint32_t zones;
    bool mixed;  // other streams had work since the check before
    Launch launch;
    uint64_t clean;  // number of the launch after which the check before found nothing wrong, when it was made
  };
  struct Pinned {  // of one slot
    ZoneToCheck zones[kMostZones];
    uint32_t flags[kMostZones];
  };
  struct Context {
    std::atomic<CUcontext> context;
    CUfunction kernel;
    Pinned* pinned;
    std::atomic<uint64_t> last_checked;  // number of the launch behind the last check of all its zones; 0: of a part, or none
    Slot slots[kSlots];
    Context* next;
  };

  Context* find(CUcontext context) noexcept;
  Slot* take(Context& context) noexcept;
  uint32_t collect(CUcontext context, Pinned& out) noexcept;
  enum class Put : uint8_t { nothing, blind, check };  // blind: the kernel runs, and nothing tells when it has run
  Put enqueue(Context& context, Slot& slot, const StreamArg& stream) noexcept;
  static Slot* next_waiting(Context& context, uint64_t after) noexcept;
  void look(Context& context, Slot& slot, GuardRecord* leaving) noexcept;
  Pinned& pinned_of(Context& context, const Slot& slot) noexcept { return context.pinned[&slot - context.slots]; }

  const DriverApi& driver_;
  CaptureGate& gate_;
  GuardMemory& memory_;
  GuardRecords& records_;
  FindingReporter& reporter_;
  const uint32_t every_;
  Lock lock_{};
  Once said_none_{};
  std::atomic<Context*> contexts_{nullptr};  // one that its context has left waits for the next one
  std::atomic<uint32_t> preparing_{0};
  std::atomic<uint32_t> waiting_{0};
  std::atomic<uint64_t> last_stream_{0};
  std::atomic<uint64_t> last_mixed_{0};  // number of the last launch into another stream than the one before
};

}  // namespace xlog
