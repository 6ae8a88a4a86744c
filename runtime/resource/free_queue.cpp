#include "runtime/resource/free_queue.h"

#include "runtime/resource/event_pool.h"

namespace xlog {

FreeQueue::Added FreeQueue::add(const DriverApi& driver, CUcontext context, uint64_t bytes, void* what, CUresult& result) noexcept {
  LockGuard guard(lock_);  // the order of the queue is the order of the records
  if (end_ - first_ == kEntries) {
    return Added::full;
  }
  Entry& entry = at(end_);
  result = entry.event != nullptr ? CUDA_SUCCESS : make_event(driver, context, entry.event);
  if (result == CUDA_SUCCESS) {
    result = driver.cuCtxRecordEvent(context, entry.event);
  }
  if (result != CUDA_SUCCESS) {
    return Added::failed;
  }
  entry.bytes = bytes;
  entry.what = what;
  ++end_;
  return Added::queued;
}

void FreeQueue::pop_until(uint64_t end, Done& done) noexcept {
  for (; first_ != end; ++first_) {
    Entry& entry = at(first_);
    done.done(entry.bytes, entry.what);
    entry.what = nullptr;
  }
}

void FreeQueue::settle(const DriverApi& driver, Done& done) noexcept {
  LockGuard guard(lock_);
  auto is_done = [&](uint64_t number) { return driver.cuEventQuery(at(number).event) != CUDA_ERROR_NOT_READY; };
  if (first_ == end_ || !is_done(first_)) {
    return;
  }
  uint64_t known = first_;  // done
  uint64_t open = end_;     // not done, or none
  if (end_ - first_ > 1) {
    if (is_done(end_ - 1)) {
      known = end_ - 1;
    } else {
      open = end_ - 1;
    }
  }
  while (open - known > 1) {
    uint64_t middle = known + (open - known) / 2;
    (is_done(middle) ? known : open) = middle;
  }
  pop_until(known + 1, done);
}

CUevent FreeQueue::oldest() noexcept {
  LockGuard guard(lock_);
  return first_ != end_ ? at(first_).event : nullptr;
}

void FreeQueue::forget(Done& done) noexcept {
  LockGuard guard(lock_);
  pop_until(end_, done);
  for (Entry& each : entries_) {
    each.event = nullptr;
  }
}

}  // namespace xlog
