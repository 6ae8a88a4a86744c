// The streams of one device that a C++ program and its resources share, and the order between them. Specification,
// section 7, and the event part of section 4.
//
// Order is kept in ticks, not in events: a stream's tick is a number that stands for all work enqueued there before it
// was taken. Nothing is recorded until somebody must wait for a tick; then one event, recorded at that moment, stands for
// every tick up to it. So an event may cover more work than the tick did, never less. A stream keeps at most
// kEventsPerStream events, for ever, and records them anew.
//
// Thread-safe. Streams live as long as the pool. Not inside a stream capture.
#pragma once

#include <atomic>
#include <cstddef>

#include "runtime/base/lock.h"
#include "runtime/resource/device_context.h"

namespace xlog {

inline constexpr size_t kDefaultMaxStreams = 16;
inline constexpr size_t kMostStreams = 1024;
static_assert(kMostStreams < 1U << StreamId::kIndexBits);

enum class StreamPoolError : uint8_t {
  none,
  capacity,     // all streams of the pool are given out
  fork_failed,  // the driver refused; `driver` is its answer
};
struct AcquiredStream {
  StreamId id{};
  StreamPoolError error = StreamPoolError::none;
  Status driver{};
};

using Tick = uint64_t;

class StreamPool {
 public:
  // At most `max` streams besides the default one (1 .. kMostStreams).
  StreamPool(const DriverApi& driver, int ordinal, size_t max = kDefaultMaxStreams) noexcept;
  ~StreamPool();
  StreamPool(const StreamPool&) = delete;
  StreamPool& operator=(const StreamPool&) = delete;

  // Whether the device could be opened and there was memory.
  [[nodiscard]] const Status& status() const noexcept { return status_; }
  [[nodiscard]] const DeviceContext& context() const noexcept { return context_; }
  [[nodiscard]] int device_ordinal() const noexcept { return context_.ordinal(); }
  [[nodiscard]] size_t max_streams() const noexcept { return max_; }
  [[nodiscard]] size_t non_default_len() const noexcept { return count_.load(std::memory_order_acquire); }

  // A new non-blocking stream that starts after what is enqueued on the default stream. Never given back, never the
  // default stream.
  AcquiredStream acquire() noexcept;
  // The CUstream of an id; nullptr when it is none of this pool. The default stream is CU_STREAM_LEGACY.
  [[nodiscard]] CUstream resolve(StreamId id) const noexcept;

  // The id at an index, whether or not it is given out.
  [[nodiscard]] StreamId id_at(size_t index) const noexcept {
    return index == 0 ? kDefaultStream : StreamId{number_ << StreamId::kIndexBits | static_cast<uint32_t>(index)};
  }

  // What follows takes ids that resolve.

  // All work enqueued on the stream before this call.
  Tick mark(StreamId id) noexcept { return timeline(id).submitted.fetch_add(1, std::memory_order_acq_rel) + 1; }
  // Work enqueued on `waiter` from now on runs after `tick` of `on`: at most one event recorded and one wait enqueued,
  // none when it is known to be so already.
  Status order(StreamId waiter, StreamId on, Tick tick) noexcept;
  // Whether the work is known to be done. Asks the driver; never waits, not for another thread either.
  bool is_done(StreamId id, Tick tick) noexcept;
  // Waits for the host, until `deadline` (steady ns): false when it passed, or the device failed.
  bool wait_done(StreamId id, Tick tick, uint64_t deadline) noexcept;

  // The device failed: no tick comes due any more. The first error that an event showed.
  [[nodiscard]] Status fault() const noexcept {
    return Status::from(static_cast<CUresult>(fault_.load(std::memory_order_relaxed)), "the device reported it");
  }

  // Event operations that the driver was asked for, for tests and benchmarks.
  struct Counters {
    uint64_t records = 0;
    uint64_t waits = 0;
    uint64_t queries = 0;
  };
  [[nodiscard]] Counters counters() const noexcept;

 private:
  static constexpr size_t kEventsPerStream = 8;
  struct Recorded {
    CUevent event;
    Tick tick;  // covers this one and all before
  };
  struct alignas(128) Timeline {
    CUstream handle;
    std::atomic<Tick> submitted;
    std::atomic<Tick> completed;
    std::atomic<Tick>* waited;            // by stream: this one runs after that tick of it
    alignas(64) Lock lock;                // of what follows; held while an event is recorded or asked
    Recorded recorded[kEventsPerStream];  // oldest first: the first `outstanding` are in use
    size_t outstanding;
  };

  [[nodiscard]] Timeline& timeline(StreamId id) const noexcept { return timelines_[id.index()]; }
  CUresult record(Timeline& line, Recorded& out) noexcept;
  CUresult covering(Timeline& line, Tick tick, Recorded& out) noexcept;
  void retire_done(Timeline& line) noexcept;
  void note_fault(CUresult result) noexcept;
  void look_at_stream(Timeline& line) noexcept;

  DeviceContext context_;
  const DriverApi& driver_;
  size_t max_;
  uint32_t number_;  // upper bits of the ids
  std::atomic<size_t> count_{0};
  Lock acquire_lock_;
  Status status_;
  size_t mapped_bytes_ = 0;
  Timeline* timelines_ = nullptr;
  std::atomic<int> fault_{CUDA_SUCCESS};
  std::atomic<uint64_t> records_{0};
  std::atomic<uint64_t> waits_{0};
  std::atomic<uint64_t> queries_{0};
};

}  // namespace xlog
