#include "runtime/device_runtime.h"

namespace xlog {

XlogDeviceRuntime::XlogDeviceRuntime(const DriverApi& driver, const Options& options, Recorder& recorder, int ordinal,
                                     const DeviceFacts& facts) noexcept
    : facts_(facts),
      native_(driver),
      budget_(native_, driver, facts.limit, options.budget_count),
      logging_(facts.limit != UINT64_MAX ? static_cast<MemoryResource&>(budget_) : native_, recorder, ordinal),
      has_budget_(facts.limit != UINT64_MAX),
      has_logging_(options.log.size != 0),
      top_(&native_) {
  if (has_budget_) {
    top_ = &budget_;
  }
  if (has_logging_) {
    top_ = &logging_;
  }
}

}  // namespace xlog
