// Contexts come and go; the last one has the overflow.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  for (int i = 0; i < 40; ++i) {
    CUcontext context = nullptr;
    MUST(cuCtxCreate_v2(&context, 0, 0));
    CUdeviceptr block = must_alloc(1000);
    if (i == 39) {
      CUmodule module = nullptr;
      MUST(cuModuleLoadData(&module, kKernels));
      MUST(cuModuleGetFunction(&store, module, "store_bytes"));
      write_over(block, 1000, 1);
    }
    MUST(cuMemFree_v2(block));
    MUST(cuCtxDestroy_v2(context));
  }
  show("done", CUDA_SUCCESS);
}

}  // namespace

MISUSE_PROGRAM
