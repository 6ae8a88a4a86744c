// How the guard touches device memory: on a private stream of each context, on which nothing ever waits for the program,
// or in the order of a stream of the program's, never while that captures. Thread-safe.
#pragma once

#include "runtime/base/driver_api.h"
#include "runtime/guard/guard_record.h"
#include "runtime/resource/context_work.h"

namespace xlog {

class GuardMemory final : private ContextWork::Client {
 public:
  GuardMemory(const DriverApi& driver, CaptureGate& gate) noexcept : driver_(driver), gate_(gate), work_(driver, gate, *this) {}

  // Waits for all work of the context, as cuMemFree does. False: it could not (a capture is under way, the context failed,
  // the driver has no event over a context), so what is read may still be written to.
  bool wait_for_work(CUcontext context) noexcept;

  // On the private stream of `context`, which is current. Waited for by read() and with `wait`; the zone's pattern for a
  // fraction of a millisecond at most.
  bool write_zone(const GuardRecord& record) noexcept;
  bool fill(CUcontext context, CUdeviceptr ptr, size_t bytes, unsigned char value, bool wait) noexcept;
  // What was written so is there: before a free that is not ordered behind it, or the write could land in another block.
  void finish_writes(CUcontext context) noexcept;
  bool read(CUcontext context, CUdeviceptr from, unsigned char* out, size_t n) noexcept;

  // In the order of the program's stream. Not in the legacy stream while anything captures: work there beside a capture of a
  // blocking stream is refused (906) and loses the capture.
  bool write_zone(const GuardRecord& record, const StreamArg& stream) noexcept;
  bool fill(const StreamArg& stream, CUdeviceptr ptr, size_t bytes, unsigned char value) noexcept;
  // Into pinned memory, and an event behind it.
  bool read(const StreamArg& stream, CUdeviceptr from, void* pinned, size_t n, CUevent event) noexcept;

  // An event of the stream's context; nullptr when there is none.
  CUevent take_event(const StreamArg& stream, CUcontext& context) noexcept;
  void give_event(CUcontext context, CUevent event) noexcept;
  void context_ended(CUcontext context) noexcept { work_.close(context); }
  void refuse_context(CUcontext context) noexcept { work_.lanes().refuse(context); }

 private:
  void work_is_done(ContextLane&, void*) noexcept override {}

  template <class Call>
  bool in_order(const StreamArg& stream, Call call) noexcept;

  const DriverApi& driver_;
  CaptureGate& gate_;
  ContextWork work_;
};

}  // namespace xlog
