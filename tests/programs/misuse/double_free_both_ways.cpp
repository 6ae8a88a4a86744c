// By cuMemFree and by cuMemFreeAsync.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUstream stream = make_stream();
  CUdeviceptr block = must_alloc(1000);
  MUST(cuMemFree_v2(block));
  show("again", wrong ? cuMemFreeAsync(block, stream) : CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

MISUSE_PROGRAM
