// Frees of one context that its work may still stand in front of, oldest first. They are in groups; each group has an event that was
// recorded over the whole context (cuCtxRecordEvent) behind all of its frees, so what a later event has reached, an earlier one has
// too: one query settles many. When there are as many groups as there may be, a free joins the newest, whose event is recorded again:
// the queue takes any number of frees, with a bounded number of events, and adding one never waits.
// A free that comes while something captures, when the event would end the capture, is parked: it joins the next group.
// Thread-safe; all zero is empty.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/driver_api.h"
#include "runtime/base/lock.h"

namespace xlog {

// A free in the queue. It belongs to whoever queued it and must live until it is done.
struct QueuedFree {
  uint64_t bytes;
  void* what;
  QueuedFree* next;
};

class FreeQueue {
 public:
  // What becomes of a free whose work is done; called under the queue's lock.
  class Done {
   public:
    virtual void done(const QueuedFree& free) noexcept = 0;

   protected:
    ~Done() = default;
  };
  // Records an event over `context` and queues the free, and those that were parked. On failure nothing is queued. The caller keeps
  // captures away (CaptureGate).
  CUresult add(const DriverApi& driver, CUcontext context, QueuedFree& free) noexcept;
  void park(QueuedFree& free) noexcept;
  [[nodiscard]] bool has_parked() noexcept;
  // Queues what was parked, as add() does.
  CUresult add_parked(const DriverApi& driver, CUcontext context) noexcept;
  // Asks the driver about our events; everything that is done leaves the queue. Only success is done: an event that reports an error
  // stays until its context has ended.
  void settle(const DriverApi& driver, Done& done) noexcept;
  // act(const QueuedFree&) for each free that is queued or parked, under the lock.
  template <class Act>
  void each(Act act) noexcept {
    LockGuard guard(lock_);
    auto all = [&](const List& list) {
      for (const QueuedFree* free = list.first; free != nullptr; free = free->next) {
        act(*free);
      }
    };
    for (uint64_t i = first_; i != end_; ++i) {
      all(at(i).frees);
    }
    all(parked_);
  }
  // Event of the oldest free, nullptr when there is none. It may be recorded again before it is waited for: that waits for longer
  // than needed, and for nothing that cuMemFree would not wait for.
  CUevent oldest() noexcept;
  // The context has ended: everything is done, and the events are the driver's.
  void forget(Done& done) noexcept;

 private:
  static constexpr size_t kGroups = 512;
  struct List {
    QueuedFree* first;
    QueuedFree* last;
    void append(QueuedFree* from, QueuedFree* to) noexcept;
    void finish(Done& done) noexcept;
  };
  struct Group {
    CUevent event;
    List frees;
  };
  [[nodiscard]] Group& at(uint64_t number) noexcept { return groups_[number % kGroups]; }
  // The lock is held.
  CUresult record(const DriverApi& driver, CUcontext context, QueuedFree* from, QueuedFree* to) noexcept;
  void pop_until(uint64_t end, Done& done) noexcept;

  Lock lock_;
  uint64_t first_;
  uint64_t end_;
  List parked_;
  Group groups_[kGroups];
};

}  // namespace xlog
