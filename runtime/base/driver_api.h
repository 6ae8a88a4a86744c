// The driver's functions that the runtime calls, given to it by whoever composes it: the shim fills in the next ones in
// the program's search order, a test a table of its own, a C++ program the ones that it links. The runtime itself never
// looks a symbol up.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#error "driver_api.h needs cuda.h with the names of its ABI: compile with -D__CUDA_API_VERSION_INTERNAL"
#endif

#include "runtime/base/cuda_types.h"

namespace xlog {

#define XLOG_DRIVER_CALL(name) using name##_t = decltype(&::name);
#include "runtime/base/driver_calls.def"
#undef XLOG_DRIVER_CALL

struct DriverApi {
#define XLOG_DRIVER_CALL(name) name##_t name = nullptr;
#include "runtime/base/driver_calls.def"
#undef XLOG_DRIVER_CALL
};

}  // namespace xlog
