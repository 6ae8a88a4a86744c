// Bytes whose free stands in a stream and is not known to be done, by stream and pool. An allocation on the same stream
// and pool may take them at once, as the driver would let it; for everybody else they count until the stream has come
// that far. Nothing of ours is put on the program's streams: a stream is asked (cuStreamQuery), in the relaxed capture
// mode, and never while it captures. Thread-safe; all zero is empty.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/lock.h"
#include "runtime/resource/block.h"

namespace xlog {

class PendingFrees {
 public:
  struct Where {
    StreamArg stream;
    uint64_t stream_number = 0;
    CUcontext context = nullptr;  // current when the free was made
    CUmemoryPool pool = nullptr;
  };

  // Bytes to credit at once, because there is no room to remember them (more than kEntries streams are unsettled).
  uint64_t add(const Where& where, uint64_t bytes, uint64_t now) noexcept;
  // Up to `bytes` of what is pending there; the caller owns them from now on.
  uint64_t take(uint64_t stream_number, CUmemoryPool pool, uint64_t bytes) noexcept;
  // Asks the streams; returns the bytes whose free is now known to be done.
  uint64_t settle(const DriverApi& driver, uint64_t now) noexcept;
  // The stream, or the context, is gone: so is the way to ask. Returns the bytes that were pending there.
  uint64_t forget_stream(CUstream stream) noexcept;
  uint64_t forget_context(CUcontext context) noexcept;
  // The handle may be given to another pool: nothing may be taken under it any more.
  void forget_pool(CUmemoryPool pool) noexcept;

  [[nodiscard]] uint64_t total() const noexcept;
  [[nodiscard]] bool empty() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }

 private:
  static constexpr size_t kEntries = 256;
  struct Entry {
    Where where;
    uint32_t thread;     // of a per-thread stream: only it can ask
    uint64_t added;      // bytes ever added
    uint64_t removed;    // bytes ever taken or settled, oldest first
    uint64_t last_free;  // steady ns
  };

  bool is_done(const Entry& entry, const DriverApi& driver, uint64_t now) const noexcept;
  template <class Match>
  uint64_t forget(Match match) noexcept;
  void remove(size_t i) noexcept;

  mutable Lock lock_;
  std::atomic<size_t> count_;
  Entry entries_[kEntries];
};

}  // namespace xlog
