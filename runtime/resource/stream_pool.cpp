#include "runtime/resource/stream_pool.h"

#include <time.h>

#include "runtime/base/driver_api.h"
#include "runtime/base/memory_map.h"
#include "runtime/base/system_calls.h"
#include "runtime/base/thread.h"

namespace xlog {

namespace {

uint32_t next_number() noexcept {
  static constinit std::atomic<uint32_t> last{0};
  constexpr uint32_t kMost = (1U << (32 - StreamId::kIndexBits)) - 1;
  return last.fetch_add(1, std::memory_order_relaxed) % kMost + 1;
}

void raise_to(std::atomic<Tick>& value, Tick tick) noexcept {
  Tick known = value.load(std::memory_order_relaxed);
  while (known < tick && !value.compare_exchange_weak(known, tick, std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
}

}  // namespace

StreamPool::StreamPool(const DriverApi& driver, int ordinal, size_t max) noexcept
    : context_(driver, ordinal),
      driver_(driver),
      max_(max == 0             ? 1
           : max < kMostStreams ? max
                                : kMostStreams),
      number_(next_number()),
      status_(context_.status()) {
  size_t lines = max_ + 1;
  mapped_bytes_ = lines * sizeof(Timeline) + lines * lines * sizeof(std::atomic<Tick>);
  auto* memory = static_cast<unsigned char*>(status_.ok() ? map_kept(mapped_bytes_) : nullptr);
  if (memory == nullptr) {
    status_ = status_.ok() ? Status::from(CUDA_ERROR_OUT_OF_MEMORY, "no host memory") : status_;
    return;
  }
  timelines_ = reinterpret_cast<Timeline*>(memory);
  auto* waited = reinterpret_cast<std::atomic<Tick>*>(memory + lines * sizeof(Timeline));
  for (size_t i = 0; i < lines; ++i) {
    timelines_[i].waited = waited + i * lines;
  }
  timelines_[0].handle = CU_STREAM_LEGACY;
}

StreamPool::~StreamPool() {
  if (timelines_ == nullptr) {
    return;
  }
  DeviceContext::Scope scope(context_);
  for (size_t i = 0; i <= max_; ++i) {
    for (Recorded& each : timelines_[i].recorded) {
      if (each.event != nullptr) {
        driver_.cuEventDestroy_v2(each.event);
      }
    }
    if (i != 0 && timelines_[i].handle != nullptr) {
      driver_.cuStreamDestroy_v2(timelines_[i].handle);
    }
  }
  unmap_state(timelines_, mapped_bytes_);
}

AcquiredStream StreamPool::acquire() noexcept {
  if (!status_.ok()) {
    return {.error = StreamPoolError::fork_failed, .driver = status_};
  }
  DeviceContext::Scope scope(context_);
  LockGuard guard(acquire_lock_);
  size_t count = count_.load(std::memory_order_relaxed);
  if (count == max_) {
    return {.error = StreamPoolError::capacity};
  }
  CUstream handle = nullptr;
  CUresult result = driver_.cuStreamCreate(&handle, CU_STREAM_NON_BLOCKING);
  if (result != CUDA_SUCCESS) {
    return {.error = StreamPoolError::fork_failed, .driver = Status::from(result)};
  }
  StreamId id{number_ << StreamId::kIndexBits | static_cast<uint32_t>(count + 1)};
  timeline(id).handle = handle;
  Status ordered = order(id, kDefaultStream, mark(kDefaultStream));
  if (!ordered.ok()) {
    timeline(id).handle = nullptr;
    driver_.cuStreamDestroy_v2(handle);
    return {.error = StreamPoolError::fork_failed, .driver = ordered};
  }
  count_.store(count + 1, std::memory_order_release);
  return {.id = id};
}

CUstream StreamPool::resolve(StreamId id) const noexcept {
  if (id == kDefaultStream) {
    return timelines_ != nullptr ? CU_STREAM_LEGACY : nullptr;
  }
  bool known = id.pool() == number_ && id.index() != 0 && id.index() <= count_.load(std::memory_order_acquire);
  return known ? timeline(id).handle : nullptr;
}

// The lock is held. Events are recorded in the order of their ticks. When all are in use the newest is recorded anew:
// who waits for it waits for more than it asked for, and the oldest still comes due.
CUresult StreamPool::record(Timeline& line, Recorded& out) noexcept {
  bool full = line.outstanding == kEventsPerStream;
  Recorded& slot = line.recorded[full ? kEventsPerStream - 1 : line.outstanding];
  CUresult result = slot.event != nullptr ? CUDA_SUCCESS : driver_.cuEventCreate(&slot.event, CU_EVENT_DISABLE_TIMING);
  Tick tick = line.submitted.load(std::memory_order_acquire);
  if (result == CUDA_SUCCESS) {
    records_.fetch_add(1, std::memory_order_relaxed);
    result = driver_.cuEventRecord(slot.event, line.handle);
  }
  if (result == CUDA_SUCCESS) {
    slot.tick = tick;
    line.outstanding += full ? 0 : 1;
    out = slot;
  }
  return result;
}

// The lock is held. The oldest event that covers the tick; a new one when there is none.
CUresult StreamPool::covering(Timeline& line, Tick tick, Recorded& out) noexcept {
  for (size_t i = 0; i < line.outstanding; ++i) {
    if (line.recorded[i].tick >= tick) {
      out = line.recorded[i];
      return CUDA_SUCCESS;
    }
  }
  return record(line, out);
}

void StreamPool::note_fault(CUresult result) noexcept {
  int none = CUDA_SUCCESS;
  if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY) {
    fault_.compare_exchange_strong(none, result, std::memory_order_relaxed);
  }
}

// The lock is held. Events that are done leave the front; they stay events of this stream, so that another thread that
// still waits for one waits for later work of the same stream at most.
void StreamPool::retire_done(Timeline& line) noexcept {
  size_t done = 0;
  while (done < line.outstanding) {
    queries_.fetch_add(1, std::memory_order_relaxed);
    CUresult result = driver_.cuEventQuery(line.recorded[done].event);
    if (result != CUDA_SUCCESS) {
      note_fault(result);
      break;
    }
    raise_to(line.completed, line.recorded[done].tick);
    ++done;
  }
  for (size_t turn = 0; turn < done; ++turn) {
    Recorded first = line.recorded[0];
    for (size_t i = 0; i + 1 < line.outstanding; ++i) {
      line.recorded[i] = line.recorded[i + 1];
    }
    line.recorded[--line.outstanding] = first;
  }
}

// The lock is held, and no event covers what is asked. A stream that is idle needs none; for a busy one it is recorded
// now, and found done by a later call.
void StreamPool::look_at_stream(Timeline& line) noexcept {
  Tick tick = line.submitted.load(std::memory_order_acquire);
  queries_.fetch_add(1, std::memory_order_relaxed);
  CUresult result = driver_.cuStreamQuery(line.handle);
  if (result == CUDA_SUCCESS) {
    raise_to(line.completed, tick);
    return;
  }
  if (result == CUDA_ERROR_NOT_READY) {
    Recorded unused{};
    result = record(line, unused);
  }
  note_fault(result);
}

Status StreamPool::order(StreamId waiter, StreamId on, Tick tick) noexcept {
  Timeline& target = timeline(on);
  std::atomic<Tick>& waited = timeline(waiter).waited[on.index()];
  bool known = waiter == on || target.completed.load(std::memory_order_acquire) >= tick || waited.load(std::memory_order_acquire) >= tick;
  if (known) {
    return {};
  }
  DeviceContext::Scope scope(context_);
  Recorded covers{};
  CUresult result = CUDA_SUCCESS;
  {
    LockGuard guard(target.lock);
    result = covering(target, tick, covers);
  }
  if (result == CUDA_SUCCESS) {
    waits_.fetch_add(1, std::memory_order_relaxed);
    result = driver_.cuStreamWaitEvent(timeline(waiter).handle, covers.event, CU_EVENT_WAIT_DEFAULT);
  }
  if (result != CUDA_SUCCESS) {
    return Status::from(result, "ordering two streams");
  }
  raise_to(waited, covers.tick);
  return {};
}

bool StreamPool::is_done(StreamId id, Tick tick) noexcept {
  Timeline& line = timeline(id);
  if (line.completed.load(std::memory_order_acquire) >= tick) {
    return true;
  }
  if (!line.lock.try_lock()) {
    return false;
  }
  DeviceContext::Scope scope(context_);
  retire_done(line);
  bool covered = line.outstanding != 0 && line.recorded[line.outstanding - 1].tick >= tick;
  if (!covered && line.completed.load(std::memory_order_relaxed) < tick) {
    look_at_stream(line);
  }
  line.lock.unlock();
  return line.completed.load(std::memory_order_acquire) >= tick;
}

bool StreamPool::wait_done(StreamId id, Tick tick, uint64_t deadline) noexcept {
  for (timespec nap{.tv_sec = 0, .tv_nsec = 5'000}; !is_done(id, tick);) {
    if (steady_time() >= deadline || !fault().ok()) {
      return false;
    }
    kernel::sleep(nap);
    nap.tv_nsec = nap.tv_nsec < 1'000'000 ? nap.tv_nsec * 2 : nap.tv_nsec;
  }
  return true;
}

StreamPool::Counters StreamPool::counters() const noexcept {
  return {.records = records_.load(std::memory_order_relaxed),
          .waits = waits_.load(std::memory_order_relaxed),
          .queries = queries_.load(std::memory_order_relaxed)};
}

}  // namespace xlog
