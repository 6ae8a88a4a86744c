// How the guard touches device memory: on a private stream of each context, on which nothing ever waits for the program,
// or in the order of a stream of the program's, never while that captures. Thread-safe.
#pragma once

#include "runtime/base/driver_api.h"
#include "runtime/guard/guard_record.h"
#include "runtime/guard/pinned_memory.h"
#include "runtime/guard/zone.h"
#include "runtime/resource/context_work.h"

namespace xlog {

class GuardMemory final : private ContextWork::Client {
 public:
  GuardMemory(const DriverApi& driver, CaptureGate& gate) noexcept : driver_(driver), gate_(gate), work_(driver, gate, *this) {}

  // Waits for all work of the context, as cuMemFree does. Not done: a capture is under way, the context failed, or the driver has no
  // event over a context, so what is read may still be written to.
  WaitResult wait_for_work(CUcontext context) noexcept;
  // A driver call about work said that this work is over: it is done, or it has failed and nothing of it runs any more.
  static bool is_over(CUresult code) noexcept {
    WaitResult result = WaitResult::from(code);
    return result.is_done() || result.is_fault_of_the_work() || code == CUDA_ERROR_DEINITIALIZED;
  }

  // On the private stream of `context`, which is current. Waited for by read() and with `wait`.
  bool write_zone(GuardRecord& record) noexcept;
  // With `wait`, what could not be waited for may still be written: finish_writes() says so.
  bool fill(CUcontext context, CUdeviceptr ptr, size_t bytes, unsigned char value, bool wait) noexcept;
  // What was written so is there, or will never be: before a free that is not ordered behind it, or the write could land in another
  // block. Not done: the block must not be freed.
  WaitResult finish_writes(CUcontext context) noexcept;
  // Before a kernel that may overrun blocks: a pattern that came later would hide it. Waits once for the same writes, and not
  // for long: engines may be taken, or the GPU by another process, and a launch must not wait for that. Returns how many
  // zones the kernel may overtake that none has before.
  uint64_t finish_writes_briefly() noexcept;
  // Its pattern is known to be there.
  [[nodiscard]] bool has_landed(const GuardRecord& record) const noexcept { return record.ordered || has_landed(record.write_number); }
  [[nodiscard]] bool has_landed(uint64_t write_number) const noexcept { return write_number <= landed_.load(std::memory_order_acquire); }
  bool read(CUcontext context, CUdeviceptr from, unsigned char* out, size_t n) noexcept;
  // Adds what is wrong with the zone.
  bool read_zone(const GuardRecord& record, Damage& damage) noexcept;

  // A look at a zone that is put behind all work of the context, and waited for by the free of the block: cuMemFree waits
  // for the context's work, this included, and so do the sources of plain memory before it is anybody else's. So a free
  // waits once.
  class LastLook {
   public:
    LastLook(GuardMemory& memory, const GuardRecord& record) noexcept;
    ~LastLook();
    LastLook(const LastLook&) = delete;
    LastLook& operator=(const LastLook&) = delete;
    // False: nothing was put there (a capture is under way, the zone is large, the driver cannot).
    [[nodiscard]] bool is_under_way() const noexcept { return slot_ != nullptr; }
    // After the free.
    bool finish(Damage& damage) noexcept;

   private:
    static ContextLanes::Use open(GuardMemory& memory, const GuardRecord& record) noexcept;
    [[nodiscard]] bool wait() noexcept;
    GuardMemory& memory_;
    const GuardRecord& record_;
    ContextLanes::Use lane_;
    CUevent event_ = nullptr;  // over the work, then over the copy
    unsigned char* slot_ = nullptr;
  };

  // In the order of the program's stream. Not in the legacy stream while anything captures: work there beside a capture of a
  // blocking stream is refused (906) and loses the capture.
  bool write_zone(const GuardRecord& record, const StreamArg& stream) noexcept;
  bool fill(const StreamArg& stream, CUdeviceptr ptr, size_t bytes, unsigned char value) noexcept;
  // Into pinned memory, and an event behind it. `blind`: the copy is under way, and nothing will tell when it is done.
  enum class Put : uint8_t { nothing, blind, copy };
  Put read(const StreamArg& stream, CUdeviceptr from, void* pinned, size_t n, CUevent event) noexcept;

  // An event of the stream's context; nullptr when there is none.
  CUevent take_event(const StreamArg& stream, CUcontext& context) noexcept;
  void give_event(CUcontext context, CUevent event) noexcept;
  // The driver is about to end the context; then context_stays() or context_ended().
  void begin_context_end(CUcontext context) noexcept {
    work_.lanes().suspend(context, [](ContextLane&) {});
    looks_.suspend(context, [](ContextLane&) {});
  }
  void context_stays(CUcontext context) noexcept {
    work_.lanes().resume(context, [](ContextLane&) {});
    looks_.resume(context, [](ContextLane&) {});
  }
  void context_ended(CUcontext context) noexcept {
    work_.close(context, [](ContextLane&) {});
    looks_.close(context, [](ContextLane&) {});
    pinned_.context_ended(context);
  }
  [[nodiscard]] bool knows_context(CUcontext context) noexcept { return work_.lanes().knows(context) || looks_.knows(context); }
  void refuse_context(CUcontext context) noexcept {
    work_.lanes().refuse(context);
    looks_.refuse(context);
  }

 private:
  // A slot into which a copy may still be under way is never given back.
  unsigned char* take_slot(size_t bytes) noexcept;
  void give_slot(unsigned char* slot) noexcept;
  bool is_idle_by(ContextLane& lane, uint64_t deadline) noexcept;
  WaitResult finish_lane(ContextLane& lane) noexcept;
  void work_is_done(ContextLane&, void*) noexcept override {}

  template <class Call>
  bool in_order(const StreamArg& stream, Call call) noexcept;

  const DriverApi& driver_;
  CaptureGate& gate_;
  ContextWork work_;
  ContextLanes looks_{};  // their streams wait for the program's work: last looks, and nothing else
  // Zones written on private streams, counted when the writes are in the stream; the highest count that is known to be done,
  // and the highest that was waited for in vain.
  std::atomic<uint64_t> issued_{0};
  std::atomic<uint64_t> landed_{0};
  std::atomic<uint64_t> given_up_{0};
  std::atomic<uint64_t> waited_in_vain_{0};  // nanoseconds
  // Where small reads arrive: one slot a read.
  static constexpr size_t kReads = 16;
  std::atomic<uint32_t> reads_{0};  // a bit for each slot in use
  PinnedMemory pinned_{};
};

}  // namespace xlog
