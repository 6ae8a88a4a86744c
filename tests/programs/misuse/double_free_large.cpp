// Of a large block.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(64 << 20);
  MUST(cuMemFree_v2(block));
  show("again", wrong ? cuMemFree_v2(block) : CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

MISUSE_PROGRAM
