// A question to the driver that changes nothing is asked once more where it fails: what the library would do without an answer is
// worse than the question, and the program must not see that one of ours was refused.
#pragma once

#include <cuda.h>

namespace xlog {

// `call` returns a CUresult and has no effect where it fails.
template <class Call>
CUresult ask_twice(Call call) noexcept {
  CUresult result = call();
  return result == CUDA_SUCCESS ? result : call();
}

}  // namespace xlog
