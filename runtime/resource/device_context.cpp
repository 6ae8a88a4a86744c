#include "runtime/resource/device_context.h"

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

bool DeviceContext::supports_pools() const noexcept {
  int supported = 0;
  return driver_.cuMemAllocFromPoolAsync != nullptr && driver_.cuMemPoolCreate != nullptr &&
         driver_.cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, ordinal_) == CUDA_SUCCESS && supported != 0;
}

}  // namespace xlog
