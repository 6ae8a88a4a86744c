// The same block twice.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  MUST(cuMemFree_v2(block));
  show("again", wrong ? cuMemFree_v2(block) : CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

MISUSE_PROGRAM
