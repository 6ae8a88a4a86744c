#include "runtime/resource/pending_frees.h"

#include "runtime/base/driver_api.h"
#include "runtime/base/thread.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

namespace {

// A per-thread stream cannot be asked by another thread. Such a free is waited for this long, then taken as done.
constexpr uint64_t kUnaskable = 1'000'000'000;

}  // namespace

void PendingFrees::remove(size_t i) noexcept {
  size_t last = count_.load(std::memory_order_relaxed) - 1;
  entries_[i] = entries_[last];
  count_.store(last, std::memory_order_relaxed);
}

uint64_t PendingFrees::add(const Where& where, uint64_t bytes, uint64_t now) noexcept {
  LockGuard guard(lock_);
  size_t count = count_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    Entry& entry = entries_[i];
    if (entry.where.stream_number == where.stream_number && entry.where.pool == where.pool) {
      entry.added += bytes;
      entry.last_free = now;
      return 0;
    }
  }
  if (count == kEntries) {
    return bytes;
  }
  entries_[count] = {
      .where = where, .thread = where.stream.is_per_thread() ? thread_id() : 0, .added = bytes, .removed = 0, .last_free = now};
  count_.store(count + 1, std::memory_order_relaxed);
  return 0;
}

uint64_t PendingFrees::total() const noexcept {
  LockGuard guard(lock_);
  uint64_t bytes = 0;
  for (size_t i = 0; i < count_.load(std::memory_order_relaxed); ++i) {
    bytes += entries_[i].added - entries_[i].removed;
  }
  return bytes;
}

uint64_t PendingFrees::take(uint64_t stream_number, CUmemoryPool pool, uint64_t bytes) noexcept {
  if (empty() || pool == nullptr) {
    return 0;
  }
  LockGuard guard(lock_);
  size_t count = count_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    Entry& entry = entries_[i];
    if (entry.where.stream_number == stream_number && entry.where.pool == pool) {
      uint64_t pending = entry.added - entry.removed;
      uint64_t taken = bytes < pending ? bytes : pending;
      entry.removed += taken;
      if (taken == pending) {
        remove(i);
      }
      return taken;
    }
  }
  return 0;
}

bool PendingFrees::is_done(const Entry& entry, const DriverApi& driver, uint64_t now) const noexcept {
  StreamArg stream = entry.where.stream;
  if (stream.is_per_thread() && entry.thread != thread_id()) {
    return now - entry.last_free > kUnaskable;
  }
  CUcontext current = nullptr;
  bool special = stream.is_per_thread() || stream.is_legacy();
  bool push = special && driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current != entry.where.context;
  if (push && driver.cuCtxPushCurrent_v2(entry.where.context) != CUDA_SUCCESS) {
    return false;
  }
  CUstream handle = stream.is_per_thread() ? CU_STREAM_PER_THREAD : stream.is_legacy() ? CU_STREAM_LEGACY : stream.handle;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  bool askable = driver.cuStreamIsCapturing == nullptr ||
                 (driver.cuStreamIsCapturing(handle, &capture) == CUDA_SUCCESS && capture == CU_STREAM_CAPTURE_STATUS_NONE);
  bool done = askable && driver.cuStreamQuery(handle) != CUDA_ERROR_NOT_READY;
  if (push) {
    driver.cuCtxPopCurrent_v2(&current);
  }
  return done;
}

uint64_t PendingFrees::settle(const DriverApi& driver, uint64_t now) noexcept {
  if (empty()) {
    return 0;
  }
  RelaxedCapture relaxed(driver);
  uint64_t credit = 0;
  // One entry at a time, asked outside the lock; what was added before the question is answered by it.
  for (size_t i = kEntries; i-- > 0;) {
    Entry asked;
    {
      LockGuard guard(lock_);
      if (i >= count_.load(std::memory_order_relaxed)) {
        continue;
      }
      asked = entries_[i];
    }
    if (!is_done(asked, driver, now)) {
      continue;
    }
    LockGuard guard(lock_);
    size_t count = count_.load(std::memory_order_relaxed);
    for (size_t k = 0; k < count; ++k) {
      Entry& entry = entries_[k];
      if (entry.where.stream_number == asked.where.stream_number && entry.where.pool == asked.where.pool) {
        if (entry.removed < asked.added) {
          credit += asked.added - entry.removed;
          entry.removed = asked.added;
        }
        if (entry.removed == entry.added) {
          remove(k);
        }
        break;
      }
    }
  }
  return credit;
}

template <class Match>
uint64_t PendingFrees::forget(Match match) noexcept {
  if (empty()) {
    return 0;
  }
  LockGuard guard(lock_);
  uint64_t credit = 0;
  for (size_t i = count_.load(std::memory_order_relaxed); i-- > 0;) {
    if (match(entries_[i])) {
      credit += entries_[i].added - entries_[i].removed;
      remove(i);
    }
  }
  return credit;
}

uint64_t PendingFrees::forget_stream(CUstream stream) noexcept {
  return forget([stream](const Entry& entry) {
    return entry.where.stream.handle == stream && !entry.where.stream.is_per_thread() && !entry.where.stream.is_legacy();
  });
}

uint64_t PendingFrees::forget_context(CUcontext context) noexcept {
  return forget([context](const Entry& entry) { return entry.where.context == context; });
}

void PendingFrees::forget_pool(CUmemoryPool pool) noexcept {
  LockGuard guard(lock_);
  size_t count = count_.load(std::memory_order_relaxed);
  for (size_t i = 0; i < count; ++i) {
    if (entries_[i].where.pool == pool) {
      entries_[i].where.pool = nullptr;
    }
  }
}

}  // namespace xlog
