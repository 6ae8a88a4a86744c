// Events of one context, made when they are first needed and kept for reuse. Thread-safe; all zero is empty.
#pragma once

#include <cstddef>

#include "runtime/base/driver_api.h"
#include "runtime/base/lock.h"

namespace xlog {

// A new event of `context`, whatever context is current.
CUresult make_event(const DriverApi& driver, CUcontext context, CUevent& out) noexcept;

class EventPool {
 public:
  CUresult take(const DriverApi& driver, CUcontext context, CUevent& out) noexcept;
  void give(const DriverApi& driver, CUevent event) noexcept;
  // The context is gone, and its events with it.
  void forget() noexcept { count_ = 0; }

 private:
  static constexpr size_t kKept = 64;
  Lock lock_;
  size_t count_;
  CUevent events_[kKept];
};

}  // namespace xlog
