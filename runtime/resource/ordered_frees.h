// Bytes whose free stands in a stream of a StreamPool and is not known to be done. Frees are kept in batches, oldest
// first: an event is recorded when somebody asks, not for each free. Thread-safe; the driver is asked outside the locks.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/resource/stream_pool.h"

namespace xlog {

class OrderedFrees {
 public:
  explicit OrderedFrees(StreamPool& streams) noexcept;
  ~OrderedFrees();
  OrderedFrees(const OrderedFrees&) = delete;
  OrderedFrees& operator=(const OrderedFrees&) = delete;

  [[nodiscard]] bool ready() const noexcept { return lines_ != nullptr; }
  // A free of `bytes` was enqueued on the stream before `tick`.
  void add(StreamId stream, Tick tick, uint64_t bytes) noexcept;
  // Up to `bytes`, the newest first: the caller owns them from now on.
  uint64_t take(StreamId stream, uint64_t bytes) noexcept;
  // Asks; returns the bytes that are now known to be free.
  uint64_t settle() noexcept;
  [[nodiscard]] uint64_t total() const noexcept;

 private:
  static constexpr size_t kBatches = 8;
  struct Batch {
    StreamId stream;
    bool asked;  // an event covers it: what is added now is not
    Tick tick;
    uint64_t bytes;
  };
  struct alignas(128) Line {
    Lock lock;
    std::atomic<uint64_t> bytes;  // of all batches; written under the lock
    size_t count;
    Batch batches[kBatches];
  };
  uint64_t settle(Line& line) noexcept;
  static void change(Line& line, uint64_t by) noexcept {
    line.bytes.store(line.bytes.load(std::memory_order_relaxed) + by, std::memory_order_release);
  }

  StreamPool& streams_;
  const size_t count_;
  Line* lines_;
};

}  // namespace xlog
