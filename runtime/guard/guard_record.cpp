#include "runtime/guard/guard_record.h"

#include "runtime/base/backtrace.h"
#include "runtime/base/thread.h"

namespace xlog {

void GuardStack::take(const void* caller) noexcept {
  thread = thread_id();
  depth = static_cast<uint32_t>(take_backtrace(frames, kGuardFrames, caller));
}

void GuardRecords::add_live(GuardRecord& record) noexcept {
  LockGuard guard(lock_);
  record.previous = nullptr;
  record.next = live_;
  if (live_ != nullptr) {
    live_->previous = &record;
  }
  live_ = &record;
}

void GuardRecords::remove_live(GuardRecord& record) noexcept {
  LockGuard guard(lock_);
  (record.previous != nullptr ? record.previous->next : live_) = record.next;
  if (record.next != nullptr) {
    record.next->previous = record.previous;
  }
  record.next = record.previous = nullptr;
}

void GuardRecords::remember(GuardRecord* record) noexcept {
  GuardRecord* oldest = nullptr;
  {
    LockGuard guard(freed_lock_);
    GuardRecord*& place = freed_[next_freed_++ % kRemembered];
    oldest = place;
    place = record;
  }
  drop(oldest);
}

bool GuardRecords::find_freed(uint64_t ptr, GuardRecord& out) noexcept {
  LockGuard guard(freed_lock_);
  for (size_t i = 1; i <= kRemembered && i <= next_freed_; ++i) {
    const GuardRecord* each = freed_[(next_freed_ - i) % kRemembered];
    if (each != nullptr && each->ptr == ptr) {
      out = *each;
      return true;
    }
  }
  return false;
}

}  // namespace xlog
