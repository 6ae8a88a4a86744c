// The driver's functions that the runtime calls, given to it by whoever composes it: the shim fills in the next ones in
// the program's search order, a test a table of its own, a C++ program the ones that it links. The runtime itself never
// looks a symbol up.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL  // ABI names as they are: no cuMemAlloc -> cuMemAlloc_v2 behind our back
#endif
#include <cuda.h>

namespace xlog {

#define XLOG_DRIVER_CALL(name) using name##_t = decltype(&::name);
#include "runtime/base/driver_calls.def"
#undef XLOG_DRIVER_CALL

struct DriverApi {
#define XLOG_DRIVER_CALL(name) name##_t name = nullptr;
#include "runtime/base/driver_calls.def"
#undef XLOG_DRIVER_CALL
};

// `CUDA_ERROR_OUT_OF_MEMORY` and so on; `CUDA_ERROR_<n>` for a code that this build does not know.
const char* result_name(CUresult result) noexcept;

}  // namespace xlog
