// A pointer into a block.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  show("free", wrong ? cuMemFree_v2(block + 256) : CUDA_ERROR_INVALID_VALUE);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
