// The stack that the options ask for, for a C++ program, one a GPU ordinal; lives as long as the process.
#pragma once

#include <optional>

#include "runtime/device_facts.h"
#include "runtime/device_stack.h"
#include "runtime/library/device_runtime.h"
#include "runtime/resource/async_cuda_resource.h"
#include "runtime/resource/direct_cuda_resource.h"

namespace xlog {

class StandardStack {
 public:
  static ResourceResult<StandardStack*> try_get(int ordinal) noexcept;
  [[nodiscard]] XlogDeviceRuntime& runtime() noexcept { return runtime_; }

 private:
  StandardStack(const DriverApi& driver, const Options& options, Recorder& recorder, int ordinal, const DeviceFacts& facts) noexcept;
  static ResourceResult<StandardStack*> build(int ordinal) noexcept;

  StreamPool streams_;
  std::optional<AsyncCudaResource> async_;
  std::optional<DirectCudaResource> direct_;
  RecorderSink sink_;
  std::optional<DeviceStack> stack_;
  XlogDeviceRuntime runtime_;
};

}  // namespace xlog
