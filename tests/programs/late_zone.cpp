// A stream stands behind a value that is written later: what it allocates is not there yet when a request is refused, and what
// it frees is not yet looked at.
#include "programs/program.h"

int main() {
  start();
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr flag = must_alloc(4);
  MUST(cuMemsetD8_v2(flag, 0, 4));
  MUST(cuCtxSynchronize());
  MUST(cuStreamWaitValue32_v2(stream, flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
  CUdeviceptr late = 0;
  MUST(cuMemAllocAsync(&late, 1000, stream));
  CUdeviceptr none = 0;
  std::printf("too much: %d\n", cuMemAlloc_v2(&none, size_t{1} << 50));
  MUST(cuMemFreeAsync(late, stream));
  must_alloc(4096);  // another call, at which the guard looks at what it can
  CUstream other = nullptr;
  MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  unsigned one = 1;
  MUST(cuMemcpyHtoDAsync_v2(flag, &one, 4, other));
  MUST(cuStreamSynchronize(stream));
  std::printf("free: %d\n", cuMemFree_v2(flag));
  return 0;
}
