// Zones of blocks that are freed in the order of a stream: a copy of the zone is put into the stream before the free, and
// looked at when it has arrived. Thread-safe.
#pragma once

#include "runtime/guard/finding.h"
#include "runtime/guard/guard_memory.h"
#include "runtime/guard/pinned_memory.h"

namespace xlog {

class OrderedChecks {
 private:
  // blind: until its context ends; suspended: its context is about to end, so its event may not be asked for
  enum class State : uint8_t { free, filling, waiting, looking, blind, suspended };

 public:
  OrderedChecks(const DriverApi& driver, GuardMemory& memory, GuardRecords& records, FindingReporter& reporter, size_t zone) noexcept
      : driver_(driver), memory_(memory), records_(records), reporter_(reporter), zone_(zone) {}

  struct Slot {
    std::atomic<State> state;
    GuardRecord* record;  // nullptr: the free was refused, and only the copy is waited for
    CUcontext context;
    CUevent event;
    unsigned char* found;  // the zone as it was, pinned
    std::string_view api;
  };
  // Before the free. nullptr: nothing was put into the stream.
  Slot* begin(GuardRecord& record, const StreamArg& stream, std::string_view api) noexcept;
  // The free was accepted: the record is this object's. Or refused: the record is the caller's.
  void commit(Slot& slot, GuardRecord& record) noexcept;
  void cancel(Slot& slot) noexcept;
  // The block that is being freed at `ptr`; false when there is none.
  bool find(CUdeviceptr ptr, GuardRecord& out) noexcept;
  // Looks at what has arrived; or at all of a context that is about to end, waiting for it.
  void settle() noexcept;
  void settle_all(CUcontext context) noexcept;
  // The driver is about to end the context: no thread asks for an event of it any more, and those that do are waited for. Then
  // resume(), when it refused, or context_ended().
  void suspend(CUcontext context) noexcept;
  void resume(CUcontext context) noexcept;
  // What has not arrived never will: its blocks are free, and were not checked.
  void context_ended(CUcontext context) noexcept;

 private:
  static constexpr size_t kSlots = 128;

  Slot* take() noexcept;
  // Nothing is written into the slot any more. `arrived`: what was in the zone stands there.
  void close(Slot& slot, bool arrived) noexcept;
  void release(Slot& slot) noexcept;

  const DriverApi& driver_;
  GuardMemory& memory_;
  GuardRecords& records_;
  FindingReporter& reporter_;
  const size_t zone_;
  PinnedMemory pinned_{};
  std::atomic<uint32_t> waiting_{0};
  Slot slots_[kSlots] = {};
};

}  // namespace xlog
