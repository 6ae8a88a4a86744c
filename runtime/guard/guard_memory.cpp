#include "runtime/guard/guard_memory.h"

#include <sched.h>
#include <string.h>

#include "runtime/base/ask.h"
#include "runtime/base/thread.h"
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

bool raise(std::atomic<uint64_t>& highest, uint64_t value) noexcept {
  uint64_t known = highest.load(std::memory_order_relaxed);
  while (known < value && !highest.compare_exchange_weak(known, value, std::memory_order_acq_rel)) {
  }
  return known < value;
}

}  // namespace

// One of the slots for small reads; nullptr: none is free, or it is no small one.
unsigned char* GuardMemory::take_slot(size_t bytes) noexcept {
  unsigned char* all = bytes <= kPart ? pinned_.get(driver_, kReads * kPart) : nullptr;
  uint32_t used = reads_.load(std::memory_order_relaxed);
  while (all != nullptr && used != (1U << kReads) - 1) {
    uint32_t free = ~used & (used + 1);
    if (reads_.compare_exchange_weak(used, used | free, std::memory_order_acquire)) {
      return all + static_cast<size_t>(__builtin_ctz(free)) * kPart;
    }
  }
  return nullptr;
}

void GuardMemory::give_slot(unsigned char* slot) noexcept {
  if (slot != nullptr) {
    auto index = static_cast<unsigned>((slot - pinned_.data()) / static_cast<ptrdiff_t>(kPart));
    reads_.fetch_and(~(1U << index), std::memory_order_release);
  }
}

ContextLanes::Use GuardMemory::LastLook::open(GuardMemory& memory, const GuardRecord& record) noexcept {
  const DriverApi& driver = memory.driver_;
  bool possible = record.written && driver.cuCtxRecordEvent != nullptr && driver.cuStreamWaitEvent != nullptr;
  RelaxedCapture relaxed(driver);
  return possible ? memory.looks_.open(driver, record.context, true) : ContextLanes::Use(nullptr);
}

GuardMemory::LastLook::LastLook(GuardMemory& memory, const GuardRecord& record) noexcept
    : memory_(memory), record_(record), lane_(open(memory, record)) {
  const DriverApi& driver = memory.driver_;
  RelaxedCapture relaxed(driver);
  if (!lane_ || lane_->events.take(driver, record.context, event_) != CUDA_SUCCESS) {
    return;
  }
  slot_ = memory.take_slot(record.zone);
  bool there = false;
  if (slot_ != nullptr) {
    CaptureGate::Section section(memory.gate_);
    there = section.is_open() && driver.cuCtxRecordEvent(record.context, event_) == CUDA_SUCCESS;
  }
  bool copies = there && driver.cuStreamWaitEvent(lane_->stream, event_, 0) == CUDA_SUCCESS &&
                driver.cuMemcpyDtoHAsync_v2(slot_, record.ptr + record.bytes, record.zone, lane_->stream) == CUDA_SUCCESS;
  if (!copies) {
    memory.give_slot(slot_);
    slot_ = nullptr;
  } else if (driver.cuEventRecord(event_, lane_->stream) != CUDA_SUCCESS) {
    slot_ = nullptr;
  }
}

bool GuardMemory::LastLook::wait() noexcept {
  RelaxedCapture relaxed(memory_.driver_);
  return WaitResult::from(memory_.driver_.cuEventSynchronize(event_)).is_done();
}

bool GuardMemory::LastLook::finish(Damage& damage) noexcept {
  bool good = wait();
  if (good) {
    look_at_zone(record_.seed, 0, slot_, record_.zone, damage);
    memory_.give_slot(slot_);
  }
  slot_ = nullptr;
  return good;
}

GuardMemory::LastLook::~LastLook() {
  if (slot_ != nullptr && wait()) {  // the free was refused
    memory_.give_slot(slot_);
  }
  if (event_ != nullptr) {
    lane_->events.give(memory_.driver_, event_);
  }
}

WaitResult GuardMemory::wait_for_work(CUcontext context) noexcept {
  if (driver_.cuCtxRecordEvent == nullptr) {
    return WaitResult::from(CUDA_ERROR_NOT_SUPPORTED);
  }
  RelaxedCapture relaxed(driver_);
  ContextLanes::Use lane = work_.lanes().open(driver_, context, true);
  return lane ? work_.wait(*lane) : WaitResult::from(CUDA_ERROR_NOT_SUPPORTED);
}

bool GuardMemory::write_zone(GuardRecord& record) noexcept {
  RelaxedCapture relaxed(driver_);
  ContextLanes::Use lane = work_.lanes().open(driver_, record.context, true);
  bool written = lane && each_part(record, [&](size_t at, const unsigned char* bytes, size_t n) noexcept {
                   return driver_.cuMemcpyHtoDAsync_v2(record.ptr + record.bytes + at, bytes, n, lane->stream);
                 });
  record.write_number = issued_.fetch_add(1, std::memory_order_acq_rel) + 1;
  return written;
}

// False: the lane has not come by then to where it is now. Its stream is not asked itself, because another thread may be inside a copy
// on it; an event is recorded there once, and asked for.
bool GuardMemory::is_idle_by(ContextLane& lane, uint64_t deadline) noexcept {
  CUevent event = nullptr;
  if (lane.events.take(driver_, lane.context.load(std::memory_order_relaxed), event) != CUDA_SUCCESS) {
    return false;
  }
  bool idle = false;
  if (ask_twice([&] { return driver_.cuEventRecord(event, lane.stream); }) == CUDA_SUCCESS) {
    for (idle = is_over(driver_.cuEventQuery(event)); !idle && steady_time() < deadline;) {
      idle = is_over(driver_.cuEventQuery(event));
    }
  }
  lane.events.give(driver_, event);
  return idle;
}

// What was counted before the streams were seen idle has landed. Where processes take turns on the GPU that takes a few turns
// of milliseconds; where it would take forever, the program has lost a fifth of a second in all.
uint64_t GuardMemory::finish_writes_briefly() noexcept {
  constexpr uint64_t kPatience = 20'000'000;
  constexpr uint64_t kMostInVain = 200'000'000;
  constexpr uint64_t kLittle = 200'000;
  uint64_t upto = issued_.load(std::memory_order_acquire);
  if (landed_.load(std::memory_order_relaxed) >= upto) {
    return 0;
  }
  RelaxedCapture relaxed(driver_);
  uint64_t start = steady_time();
  bool given_up = upto <= given_up_.load(std::memory_order_relaxed);
  uint64_t patience = given_up ? 0 : waited_in_vain_.load(std::memory_order_relaxed) < kMostInVain ? kPatience : kLittle;
  bool idle = true;
  work_.lanes().each([&](ContextLane& lane) { idle = idle && is_idle_by(lane, start + patience); });
  if (idle) {
    raise(landed_, upto);
    return 0;
  }
  uint64_t known = given_up_.load(std::memory_order_relaxed);
  if (upto <= known) {
    return 0;
  }
  waited_in_vain_.fetch_add(steady_time() - start, std::memory_order_relaxed);
  uint64_t landed = landed_.load(std::memory_order_relaxed);
  return raise(given_up_, upto) ? upto - (landed > known ? landed : known) : 0;
}

bool GuardMemory::fill(CUcontext context, CUdeviceptr ptr, size_t bytes, unsigned char value, bool wait) noexcept {
  RelaxedCapture relaxed(driver_);
  ContextLanes::Use lane = work_.lanes().open(driver_, context, true);
  return lane && driver_.cuMemsetD8Async(ptr, value, bytes, lane->stream) == CUDA_SUCCESS && (!wait || finish_lane(*lane).is_done());
}

// A wait that is refused is asked for again, because what was written is on its way whatever the answer. After a fault nothing of the
// context runs any more.
WaitResult GuardMemory::finish_lane(ContextLane& lane) noexcept {
  constexpr uint64_t kPatience = 1'000'000'000;
  uint64_t start = steady_time();
  for (;;) {
    CUresult code = driver_.cuStreamSynchronize(lane.stream);
    if (is_over(code)) {
      return WaitResult::done();
    }
    if (steady_time() - start > kPatience) {
      return WaitResult::from(code);
    }
    sched_yield();
  }
}

WaitResult GuardMemory::finish_writes(CUcontext context) noexcept {
  RelaxedCapture relaxed(driver_);
  ContextLanes::Use lane = work_.lanes().find(context);
  return lane ? finish_lane(*lane) : WaitResult::done();  // nothing was written, or its context is gone
}

bool GuardMemory::read(CUcontext context, CUdeviceptr from, unsigned char* out, size_t n) noexcept {
  RelaxedCapture relaxed(driver_);
  ContextLanes::Use lane = work_.lanes().open(driver_, context, true);
  unsigned char* slot = take_slot(n);
  unsigned char* to = slot != nullptr ? slot : out;
  bool copies = lane && driver_.cuMemcpyDtoHAsync_v2(to, from, n, lane->stream) == CUDA_SUCCESS;
  bool good = copies && driver_.cuStreamSynchronize(lane->stream) == CUDA_SUCCESS;
  if (good && slot != nullptr) {
    memcpy(out, slot, n);
  }
  if (good || !copies) {
    give_slot(slot);
  }
  return good;
}

bool GuardMemory::read_zone(const GuardRecord& record, Damage& damage) noexcept {
  unsigned char found[kPart];
  for (size_t at = 0; at < record.zone; at += kPart) {
    size_t n = record.zone - at < kPart ? record.zone - at : kPart;
    if (!read(record.context, record.ptr + record.bytes + at, found, n)) {
      return false;
    }
    look_at_zone(record.seed, at, found, n, damage);
  }
  return true;
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

GuardMemory::Put GuardMemory::read(const StreamArg& stream, CUdeviceptr from, void* pinned, size_t n, CUevent event) noexcept {
  auto copy = stream.per_thread_abi ? driver_.cuMemcpyDtoHAsync_v2_ptsz : driver_.cuMemcpyDtoHAsync_v2;
  auto record = stream.per_thread_abi ? driver_.cuEventRecord_ptsz : driver_.cuEventRecord;
  Put put = Put::nothing;
  if (copy != nullptr && record != nullptr) {
    in_order(stream, [&]() noexcept {
      bool copies = copy(pinned, from, n, stream.handle) == CUDA_SUCCESS;
      put = !copies ? Put::nothing : record(event, stream.handle) == CUDA_SUCCESS ? Put::copy : Put::blind;
      return copies;
    });
  }
  return put;
}

CUevent GuardMemory::take_event(const StreamArg& stream, CUcontext& context) noexcept {
  bool special = stream.is_legacy() || stream.is_per_thread() || driver_.cuStreamGetCtx == nullptr;
  if (special || driver_.cuStreamGetCtx(stream.handle, &context) != CUDA_SUCCESS) {
    ask_twice([&] { return driver_.cuCtxGetCurrent(&context); });
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
