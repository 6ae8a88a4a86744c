// A context that is current while this lives.
#pragma once

#include "runtime/base/ask.h"
#include "runtime/base/driver_api.h"

namespace xlog {

class CurrentContext {
 public:
  CurrentContext(const DriverApi& driver, CUcontext context) noexcept : driver_(driver), result_(driver.cuCtxPushCurrent_v2(context)) {}
  ~CurrentContext() {
    CUcontext popped = nullptr;
    if (result_ == CUDA_SUCCESS) {
      ask_twice([&] { return driver_.cuCtxPopCurrent_v2(&popped); });
    }
  }
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;
  [[nodiscard]] CUresult result() const noexcept { return result_; }

 private:
  const DriverApi& driver_;
  const CUresult result_;
};

}  // namespace xlog
