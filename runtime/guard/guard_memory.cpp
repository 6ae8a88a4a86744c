#include "runtime/guard/guard_memory.h"

#include "runtime/base/thread.h"
#include "runtime/guard/zone.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

namespace {

constexpr size_t kPart = 512;  // of a zone: what stands on the program's stack at a time

// Calls copy(offset, bytes, n) for each part of the zone. Pageable memory is read before such a copy returns.
template <class Copy>
bool each_part(const GuardRecord& record, Copy copy) noexcept {
  unsigned char bytes[kPart];
  for (size_t at = 0; at < record.zone; at += kPart) {
    size_t n = record.zone - at < kPart ? record.zone - at : kPart;
    fill_zone(record.seed, at, bytes, n);
    if (copy(at, bytes, n) != CUDA_SUCCESS) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool GuardMemory::wait_for_work(CUcontext context) noexcept {
  if (driver_.cuCtxRecordEvent == nullptr) {
    return false;
  }
  RelaxedCapture relaxed(driver_);
  ContextLanes::Use lane = work_.lanes().open(driver_, context, true);
  bool capturing = false;
  return lane && work_.wait(*lane, capturing) == CUDA_SUCCESS && !capturing;
}

bool GuardMemory::write_zone(const GuardRecord& record) noexcept {
  RelaxedCapture relaxed(driver_);
  ContextLanes::Use lane = work_.lanes().open(driver_, record.context, true);
  bool written = lane && each_part(record, [&](size_t at, const unsigned char* bytes, size_t n) noexcept {
                   return driver_.cuMemcpyHtoDAsync_v2(record.ptr + record.bytes + at, bytes, n, lane->stream);
                 });
  // The program's next kernel may overrun the block before the zone has its pattern, which then hides it. On a GPU whose
  // engines are taken the copy comes late, and an allocation must not wait for that.
  constexpr uint64_t kPatience = 200'000;
  uint64_t start = steady_time();
  while (written && driver_.cuStreamQuery(lane->stream) == CUDA_ERROR_NOT_READY && steady_time() - start < kPatience) {
  }
  return written;
}

bool GuardMemory::fill(CUcontext context, CUdeviceptr ptr, size_t bytes, unsigned char value, bool wait) noexcept {
  RelaxedCapture relaxed(driver_);
  ContextLanes::Use lane = work_.lanes().open(driver_, context, true);
  return lane && driver_.cuMemsetD8Async(ptr, value, bytes, lane->stream) == CUDA_SUCCESS &&
         (!wait || driver_.cuStreamSynchronize(lane->stream) == CUDA_SUCCESS);
}

void GuardMemory::finish_writes(CUcontext context) noexcept {
  RelaxedCapture relaxed(driver_);
  ContextLanes::Use lane = work_.lanes().find(context);
  if (lane && driver_.cuStreamQuery(lane->stream) == CUDA_ERROR_NOT_READY) {
    driver_.cuStreamSynchronize(lane->stream);
  }
}

bool GuardMemory::read(CUcontext context, CUdeviceptr from, unsigned char* out, size_t n) noexcept {
  RelaxedCapture relaxed(driver_);
  ContextLanes::Use lane = work_.lanes().open(driver_, context, true);
  return lane && driver_.cuMemcpyDtoHAsync_v2(out, from, n, lane->stream) == CUDA_SUCCESS &&
         driver_.cuStreamSynchronize(lane->stream) == CUDA_SUCCESS;
}

template <class Call>
bool GuardMemory::in_order(const StreamArg& stream, Call call) noexcept {
  CaptureGate::Section section(gate_);
  if (!stream.is_legacy()) {
    section.leave();
  } else if (!section.is_open()) {
    return false;
  }
  return call();
}

bool GuardMemory::write_zone(const GuardRecord& record, const StreamArg& stream) noexcept {
  auto call = stream.per_thread_abi ? driver_.cuMemcpyHtoDAsync_v2_ptsz : driver_.cuMemcpyHtoDAsync_v2;
  return call != nullptr && in_order(stream, [&]() noexcept {
           return each_part(record, [&](size_t at, const unsigned char* bytes, size_t n) noexcept {
             return call(record.ptr + record.bytes + at, bytes, n, stream.handle);
           });
         });
}

bool GuardMemory::fill(const StreamArg& stream, CUdeviceptr ptr, size_t bytes, unsigned char value) noexcept {
  auto call = stream.per_thread_abi ? driver_.cuMemsetD8Async_ptsz : driver_.cuMemsetD8Async;
  return call != nullptr && in_order(stream, [&]() noexcept { return call(ptr, value, bytes, stream.handle) == CUDA_SUCCESS; });
}

bool GuardMemory::read(const StreamArg& stream, CUdeviceptr from, void* pinned, size_t n, CUevent event) noexcept {
  auto copy = stream.per_thread_abi ? driver_.cuMemcpyDtoHAsync_v2_ptsz : driver_.cuMemcpyDtoHAsync_v2;
  auto record = stream.per_thread_abi ? driver_.cuEventRecord_ptsz : driver_.cuEventRecord;
  return copy != nullptr && record != nullptr && in_order(stream, [&]() noexcept {
           return copy(pinned, from, n, stream.handle) == CUDA_SUCCESS && record(event, stream.handle) == CUDA_SUCCESS;
         });
}

CUevent GuardMemory::take_event(const StreamArg& stream, CUcontext& context) noexcept {
  bool special = stream.is_legacy() || stream.is_per_thread() || driver_.cuStreamGetCtx == nullptr;
  if (special || driver_.cuStreamGetCtx(stream.handle, &context) != CUDA_SUCCESS) {
    driver_.cuCtxGetCurrent(&context);
  }
  RelaxedCapture relaxed(driver_);
  ContextLanes::Use lane = work_.lanes().open(driver_, context, true);
  CUevent event = nullptr;
  return lane && lane->events.take(driver_, context, event) == CUDA_SUCCESS ? event : nullptr;
}

void GuardMemory::give_event(CUcontext context, CUevent event) noexcept {
  ContextLanes::Use lane = work_.lanes().find(context);
  if (lane) {
    lane->events.give(driver_, event);
  }
}

}  // namespace xlog
