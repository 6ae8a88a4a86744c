// Stream-ordered memory of the legacy stream while a blocking stream captures: the capture is not lost by it.
#include "programs/program.h"

int main() {
  start();
  CUstream blocking = nullptr;
  MUST(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  CUdeviceptr before = 0;
  MUST(cuMemAllocAsync(&before, 1000, nullptr));
  MUST(cuCtxSynchronize());
  MUST(cuStreamBeginCapture_v2(blocking, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr p = 0;
  CUresult allocated = cuMemAllocAsync(&p, 1000, nullptr);
  CUresult freed = allocated == CUDA_SUCCESS ? cuMemFreeAsync(p, nullptr) : CUDA_SUCCESS;
  CUresult old = cuMemFreeAsync(before, nullptr);
  CUgraph graph = nullptr;
  CUresult ended = cuStreamEndCapture(blocking, &graph);
  std::printf("allocate %d, free %d, free %d, end %d, graph %d\n", allocated, freed, old, ended, graph != nullptr);
  return 0;
}
