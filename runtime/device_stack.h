// The adaptors that the options ask for, over a leaf resource: logging -> budget -> leaf. What is not switched on is not
// there.
#pragma once

#include <optional>

#include "runtime/resource/global_device_budget.h"
#include "runtime/resource/logging_resource.h"

namespace xlog {

class DeviceStack {
 public:
  // `limit` UINT64_MAX: no budget. All that is passed must outlive the stack.
  DeviceStack(DeviceMemoryResource& leaf, const Options& options, LoggingSink& sink, DeviceLedger& ledger, uint64_t limit) noexcept;

  [[nodiscard]] DeviceMemoryResource& top() noexcept { return *top_; }
  [[nodiscard]] GlobalDeviceBudget* budget() noexcept { return budget_ ? &*budget_ : nullptr; }
  [[nodiscard]] LoggingResource* logging() noexcept { return logging_ ? &*logging_ : nullptr; }

 private:
  std::optional<GlobalDeviceBudget> budget_;
  std::optional<LoggingResource> logging_;
  DeviceMemoryResource* top_;
};

}  // namespace xlog
