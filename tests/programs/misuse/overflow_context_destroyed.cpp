// In a block that goes with its context.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUcontext context = nullptr;
  MUST(cuCtxCreate_v2(&context, 0, 0));
  CUmodule module = nullptr;
  MUST(cuModuleLoadData(&module, kKernels));
  MUST(cuModuleGetFunction(&store, module, "store_bytes"));
  CUdeviceptr block = must_alloc(1000);
  write_over(block, 1000, 1);
  show("destroy", cuCtxDestroy_v2(context));
}

}  // namespace

MISUSE_PROGRAM
