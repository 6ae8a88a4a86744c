// The context ends right behind the free in a stream.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUcontext context = nullptr;
  MUST(cuCtxCreate_v2(&context, 0, 0));
  CUmodule module = nullptr;
  MUST(cuModuleLoadData(&module, kKernels));
  MUST(cuModuleGetFunction(&store, module, "store_bytes"));
  CUstream stream = make_stream();
  CUdeviceptr block = must_alloc_async(1000, stream);
  write_over(block, 1000, 1, stream);
  show("free", cuMemFreeAsync(block, stream));
  show("destroy", cuCtxDestroy_v2(context));
}

}  // namespace

MISUSE_PROGRAM
