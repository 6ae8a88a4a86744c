#include "runtime/resource/free_queue.h"

#include "runtime/resource/event_pool.h"

namespace xlog {

void FreeQueue::List::append(QueuedFree* from, QueuedFree* to) noexcept {
  if (from != nullptr) {
    (last != nullptr ? last->next : first) = from;
    last = to;
  }
}

void FreeQueue::List::finish(Done& done) noexcept {
  QueuedFree* each = first;
  first = last = nullptr;
  while (each != nullptr) {
    QueuedFree* next = each->next;  // done() may give the free to somebody else
    done.done(*each);
    each = next;
  }
}

CUresult FreeQueue::record(const DriverApi& driver, CUcontext context, QueuedFree* from, QueuedFree* to) noexcept {
  bool joins = end_ - first_ == kGroups;
  Group& group = at(joins ? end_ - 1 : end_);
  CUresult result = group.event != nullptr ? CUDA_SUCCESS : make_event(driver, context, group.event);
  if (result == CUDA_SUCCESS) {
    result = driver.cuCtxRecordEvent(context, group.event);
  }
  if (result == CUDA_SUCCESS) {
    group.frees.append(parked_.first, parked_.last);
    parked_ = {};
    group.frees.append(from, to);
    end_ += joins ? 0 : 1;
  }
  return result;
}

CUresult FreeQueue::add(const DriverApi& driver, CUcontext context, QueuedFree& free) noexcept {
  LockGuard guard(lock_);  // the order of the queue is the order of the records
  free.next = nullptr;
  return record(driver, context, &free, &free);
}

void FreeQueue::park(QueuedFree& free) noexcept {
  LockGuard guard(lock_);
  free.next = nullptr;
  parked_.append(&free, &free);
}

bool FreeQueue::has_parked() noexcept {
  LockGuard guard(lock_);
  return parked_.first != nullptr;
}

CUresult FreeQueue::add_parked(const DriverApi& driver, CUcontext context) noexcept {
  LockGuard guard(lock_);
  return parked_.first != nullptr ? record(driver, context, nullptr, nullptr) : CUDA_SUCCESS;
}

void FreeQueue::pop_until(uint64_t end, Done& done) noexcept {
  for (; first_ != end; ++first_) {
    at(first_).frees.finish(done);
  }
}

void FreeQueue::settle(const DriverApi& driver, Done& done) noexcept {
  LockGuard guard(lock_);
  auto is_done = [&](uint64_t number) { return driver.cuEventQuery(at(number).event) == CUDA_SUCCESS; };
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
  parked_.finish(done);
  for (Group& each : groups_) {
    each.event = nullptr;
  }
}

}  // namespace xlog
