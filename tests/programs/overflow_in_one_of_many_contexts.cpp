// Many contexts that live at once, each with a block; the last one has the overflow, and its block is freed after all others.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  constexpr size_t kContexts = 70;
  CUcontext contexts[kContexts] = {};
  CUdeviceptr blocks[kContexts] = {};
  for (size_t i = 0; i < kContexts; ++i) {
    MUST(cuCtxCreate_v2(&contexts[i], 0, 0));
    blocks[i] = must_alloc(1000);
    CUmodule module = nullptr;
    MUST(cuModuleLoadData(&module, kKernels));
    MUST(cuModuleGetFunction(&store, module, "store_bytes"));
    if (i == kContexts - 1) {
      write_over(blocks[i], 1000, 1);
    } else {
      write(blocks[i], 1000);
    }
  }
  for (size_t i = 0; i < kContexts; ++i) {
    MUST(cuCtxSetCurrent(contexts[i]));
    MUST(cuMemFree_v2(blocks[i]));
  }
  for (CUcontext each : contexts) {
    MUST(cuCtxDestroy_v2(each));
  }
  show("done", CUDA_SUCCESS);
}

}  // namespace

MISUSE_PROGRAM
