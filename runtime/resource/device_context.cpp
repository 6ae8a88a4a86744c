#include "runtime/resource/device_context.h"

#include "runtime/base/ask.h"
#include "runtime/base/driver_api.h"

namespace xlog {

DeviceContext::DeviceContext(const DriverApi& driver, int ordinal) noexcept : driver_(driver), ordinal_(ordinal) {
  CUresult result = driver_.cuInit(0);
  if (result == CUDA_SUCCESS) {
    result = driver_.cuDevicePrimaryCtxRetain(&context_, ordinal_);
  }
  status_ = Status::from(result, "the device's primary context");
}

DeviceContext::~DeviceContext() {
  if (context_ != nullptr) {
    driver_.cuDevicePrimaryCtxRelease_v2(ordinal_);
  }
}

DeviceContext::Scope::Scope(const DeviceContext& context) noexcept : driver_(context.driver_) {
  CUcontext current = nullptr;
  pushed_ = (driver_.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != context.context_) &&
            driver_.cuCtxPushCurrent_v2(context.context_) == CUDA_SUCCESS;
}

DeviceContext::Scope::~Scope() {
  CUcontext popped = nullptr;
  if (pushed_) {
    ask_twice([&] { return driver_.cuCtxPopCurrent_v2(&popped); });
  }
}

bool DeviceContext::supports_pools() const noexcept {
  int supported = 0;
  return driver_.cuMemAllocFromPoolAsync != nullptr && driver_.cuMemPoolCreate != nullptr &&
         driver_.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, ordinal_) == CUDA_SUCCESS && supported != 0;
}

}  // namespace xlog
