// The stack of one GPU ordinal, built from the options: logging -> budget -> native. What is not switched on is not
// there.
#pragma once

#include <atomic>
#include <new>

#include "runtime/resource/global_device_budget.h"
#include "runtime/resource/logging_resource.h"
#include "runtime/resource/native_resource.h"

namespace xlog {

struct DeviceFacts {
  char name[128] = {};
  char uuid[48] = {};        // GPU-xxxxxxxx-xxxx-...
  uint64_t total_bytes = 0;  // as the driver says
  uint64_t limit = UINT64_MAX;
};

class XlogDeviceRuntime {
 public:
  XlogDeviceRuntime(const DriverApi& driver, const Options& options, Recorder& recorder, int ordinal, const DeviceFacts& facts) noexcept;
  XlogDeviceRuntime(const XlogDeviceRuntime&) = delete;
  XlogDeviceRuntime& operator=(const XlogDeviceRuntime&) = delete;

  [[nodiscard]] MemoryResource& top() noexcept { return *top_; }
  [[nodiscard]] GlobalDeviceBudget* budget() noexcept { return has_budget_ ? &budget_ : nullptr; }
  [[nodiscard]] LoggingResource* logging() noexcept { return has_logging_ ? &logging_ : nullptr; }
  [[nodiscard]] const DeviceFacts& facts() const noexcept { return facts_; }

 private:
  DeviceFacts facts_;
  NativeResource native_;
  GlobalDeviceBudget budget_;
  LoggingResource logging_;
  bool has_budget_;
  bool has_logging_;
  MemoryResource* top_;
};

}  // namespace xlog
