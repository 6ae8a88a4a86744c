// What a resource answers. Nothing throws across the interface; the shim turns a status into the CUresult that the
// program would have seen (`code`). The five errors and their numbers: the stack's specification, section 1.
#pragma once

#include <cstdint>

#include "runtime/base/driver_api.h"
#include "runtime/base/text.h"

namespace xlog {

enum class Error : uint8_t { none, out_of_budget, driver, stream_misuse, use_after_free, out_of_bounds };

struct Status {
  Error error = Error::none;
  CUresult code = CUDA_SUCCESS;  // driver: its own code, always; out_of_budget: CUDA_ERROR_OUT_OF_MEMORY
  // out_of_budget, bytes: what was asked, what was in use, what was left, what is allowed.
  uint64_t requested = 0;
  uint64_t current = 0;
  uint64_t remaining = 0;
  uint64_t limit = 0;
  uint64_t generation = 0;  // use_after_free, out_of_bounds

  [[nodiscard]] bool ok() const noexcept { return error == Error::none; }

  static Status from(CUresult result) noexcept { return {.error = result == CUDA_SUCCESS ? Error::none : Error::driver, .code = result}; }
  static Status out_of_budget(uint64_t requested, uint64_t current, uint64_t limit) noexcept {
    return {.error = Error::out_of_budget,
            .code = CUDA_ERROR_OUT_OF_MEMORY,
            .requested = requested,
            .current = current,
            .remaining = limit > current ? limit - current : 0,
            .limit = limit};
  }
  static Status use_after_free(uint64_t generation) noexcept {
    return {.error = Error::use_after_free, .code = CUDA_ERROR_INVALID_VALUE, .generation = generation};
  }
};

// Text for people and for the column `message`: `out of budget: current ... bytes, requested ... bytes, ...`.
void put_status(TextSink& out, const Status& status) noexcept;

}  // namespace xlog
