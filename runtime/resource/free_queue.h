// Frees of one context that its work may still stand in front of, oldest first. Each has an event that was recorded over
// the whole context (cuCtxRecordEvent), so what a later one has reached, an earlier one has too: one query settles many.
// Thread-safe; all zero is empty.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/driver_api.h"
#include "runtime/base/lock.h"

namespace xlog {

class FreeQueue {
 public:
  // What becomes of a free whose work is done; called under the queue's lock.
  class Done {
   public:
    virtual void done(uint64_t bytes, void* what) noexcept = 0;

   protected:
    ~Done() = default;
  };
  enum class Added : uint8_t { queued, full, failed };
  // Records an event over `context` and queues the free. `full`: settle() or wait for oldest(), then again. The caller
  // keeps captures away (CaptureGate).
  Added add(const DriverApi& driver, CUcontext context, uint64_t bytes, void* what, CUresult& result) noexcept;
  // Asks the driver; everything that is done leaves the queue. An event that reports an error counts as done: nothing of
  // its context will run any more.
  void settle(const DriverApi& driver, Done& done) noexcept;
  // Event of the oldest free, nullptr when there is none. It may be recorded anew by the time that it is waited for: that
  // waits for longer than needed, and for nothing that cuMemFree would not wait for.
  CUevent oldest() noexcept;
  // The context is gone: everything is done, and the events are the driver's.
  void forget(Done& done) noexcept;

 private:
  static constexpr size_t kEntries = 512;
  struct Entry {
    CUevent event;
    uint64_t bytes;
    void* what;
  };
  [[nodiscard]] Entry& at(uint64_t number) noexcept { return entries_[number % kEntries]; }
  void pop_until(uint64_t end, Done& done) noexcept;

  Lock lock_;
  uint64_t first_;
  uint64_t end_;
  Entry entries_[kEntries];
};

}  // namespace xlog
