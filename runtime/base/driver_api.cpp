#include "runtime/base/driver_api.h"

namespace xlog {

const char* result_name(CUresult result) noexcept {
  switch (static_cast<int>(result)) {
    case 0:
      return "ok";
#define XLOG_CUDA_RESULT(name, value) \
  case value:                         \
    return #name;
#include "cuda_results.inc"  // made from cuda.h by the Makefile
#undef XLOG_CUDA_RESULT
    default:
      return "CUDA_ERROR_OTHER";
  }
}

}  // namespace xlog
