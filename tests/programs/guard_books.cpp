// What is left of a limit after blocks came and went in each way that a guard has a part in.
#include "programs/program.h"

namespace {

void show(const char* what, CUresult r) {
  size_t free = 0;
  size_t total = 0;
  MUST(cuMemGetInfo_v2(&free, &total));
  std::printf("%s: %d, left %zu of %zu\n", what, r, free, total);
  std::fflush(stdout);
}

}  // namespace

int main() {
  CUcontext primary = start();
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  show("nothing", CUDA_SUCCESS);
  CUdeviceptr p = must_alloc(1000);
  show("freed", cuMemFree_v2(p));
  size_t pitch = 0;
  MUST(cuMemAllocPitch_v2(&p, &pitch, 1000, 10, 4));
  show("pitched, freed", cuMemFree_v2(p));
  MUST(cuMemAllocAsync(&p, 1000, stream));
  MUST(cuMemFreeAsync(p, stream));
  show("freed in a stream", cuStreamSynchronize(stream));
  p = must_alloc(1000);
  CUgraph graph = nullptr;
  MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUresult refused = cuMemFree_v2(p);
  cuStreamEndCapture(stream, &graph);
  std::printf("free in a capture: %d\n", refused);
  show("freed after it", cuMemFree_v2(p));
  CUcontext context = nullptr;
  MUST(cuCtxCreate_v2(&context, 0, 0));
  must_alloc(1000);
  MUST(cuMemFree_v2(must_alloc(1000)));
  MUST(cuCtxDestroy_v2(context));
  MUST(cuCtxSetCurrent(primary));
  show("a context destroyed with a block", CUDA_SUCCESS);
  for (int i = 0; i < 10; ++i) {
    MUST(cuMemFree_v2(must_alloc(40 << 20)));
  }
  show("40 MiB ten times", CUDA_SUCCESS);
  must_alloc(1000);
  MUST(cuMemFree_v2(must_alloc(1000)));
  CUresult reset = cuDevicePrimaryCtxReset_v2(0);
  start();
  show("reset", reset);
  return 0;
}
