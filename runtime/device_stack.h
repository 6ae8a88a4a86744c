// The adaptors that the options ask for, over a leaf resource: logging -> guard -> budget -> leaf. What is not switched on is not
// there.
#pragma once

#include <optional>

#include "runtime/guard/guard_resource.h"
#include "runtime/resource/global_device_budget.h"
#include "runtime/resource/logging_resource.h"

namespace xlog {

class DeviceStack {
 public:
  // What a guard needs beside the options.
  struct GuardParts {
    const DriverApi& driver;
    CaptureGate& gate;
    GuardRecords& records;
    FindingReporter& reporter;
    uint64_t total_bytes;  // of the GPU
  };
  // `limit` UINT64_MAX: no budget. Without `guard` there is none, whatever the options say. All that is referred to must
  // outlive the stack.
  DeviceStack(DeviceMemoryResource& leaf, const Options& options, LoggingSink& sink, DeviceLedger& ledger, uint64_t limit,
              const GuardParts* guard = nullptr) noexcept;

  [[nodiscard]] DeviceMemoryResource& top() noexcept { return *top_; }
  [[nodiscard]] GlobalDeviceBudget* budget() noexcept { return budget_ ? &*budget_ : nullptr; }
  [[nodiscard]] GuardResource* guard() noexcept { return guard_ ? &*guard_ : nullptr; }
  [[nodiscard]] LoggingResource* logging() noexcept { return logging_ ? &*logging_ : nullptr; }

 private:
  std::optional<GlobalDeviceBudget> budget_;
  std::optional<GuardResource> guard_;
  std::optional<LoggingResource> logging_;
  DeviceMemoryResource* top_;
};

}  // namespace xlog
