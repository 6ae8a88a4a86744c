// The driver's types, and the names of its answers. What a public header needs of CUDA: nothing here depends on how the
// program that includes it wants cuda.h's function names to be read.
#pragma once

#include <cuda.h>

namespace xlog {

struct DriverApi;  // base/driver_api.h

// `CUDA_ERROR_OUT_OF_MEMORY` and so on; `CUDA_ERROR_<n>` for a code that this build does not know.
const char* result_name(CUresult result) noexcept;

}  // namespace xlog
