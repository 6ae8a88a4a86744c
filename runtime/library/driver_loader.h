// The CUDA driver, for a C++ program that links the runtime: the functions of the libcuda.so.1 that the system finds.
#pragma once

#include "runtime/base/cuda_types.h"

namespace xlog {

// The same table for the life of the process; nullptr without a driver, or with one that lacks what every driver since
// CUDA 11.2 has. `reason`: why, a text that stays. A failure is tried again by the next call. Thread-safe.
const DriverApi* load_driver(const char** reason = nullptr) noexcept;

}  // namespace xlog
