#include "runtime/guard/guard_record.h"

#include "runtime/base/backtrace.h"
#include "runtime/base/memory_map.h"
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
  if (lists_zones_ && record.written && !record.ordered) {
    add_zone(record);
  }
}

void GuardRecords::remove_live(GuardRecord& record) noexcept {
  LockGuard guard(lock_);
  (record.previous != nullptr ? record.previous->next : live_) = record.next;
  if (record.next != nullptr) {
    record.next->previous = record.previous;
  }
  record.next = record.previous = nullptr;
  remove_zone(record);
}

// A list without zones is used for the next context, so that there are never more lists than there were contexts with blocks at once.
ZoneList* GuardRecords::zones_of(CUcontext context, bool make) noexcept {
  ZoneList* empty = nullptr;
  for (ZoneList* each = lists_; each != nullptr; each = each->next) {
    if (each->context == context) {
      return each;
    }
    empty = each->zones.size() == 0 ? each : empty;
  }
  if (!make) {
    return nullptr;
  }
  if (empty == nullptr) {
    empty = static_cast<ZoneList*>(map_state(sizeof(ZoneList)));
    if (empty == nullptr) {
      return nullptr;
    }
    empty->next = lists_;
    lists_ = empty;
  }
  empty->context = context;
  empty->next_zone = 0;
  return empty;
}

void GuardRecords::add_zone(GuardRecord& record) noexcept {
  ZoneList* list = zones_of(record.context, true);
  if (list != nullptr && list->zones.add({.at = record.ptr + record.bytes,
                                          .seed = record.seed,
                                          .bytes = record.zone,
                                          .write_number = record.write_number,
                                          .record = &record})) {
    record.listed = list;
    record.listed_at = list->zones.size() - 1;
  }
}

void GuardRecords::remove_zone(GuardRecord& record) noexcept {
  if (record.listed != nullptr) {
    record.listed->zones.remove_at(record.listed_at);
    if (record.listed_at < record.listed->zones.size()) {
      record.listed->zones[record.listed_at].record->listed_at = record.listed_at;
    }
    record.listed = nullptr;
  }
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
