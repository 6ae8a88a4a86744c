// With other allocations and frees between.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(5 << 20);
  MUST(cuMemFree_v2(block));
  for (int i = 0; i < 50; ++i) {
    MUST(cuMemFree_v2(must_alloc(1000)));
  }
  show("again", wrong ? cuMemFree_v2(block) : CUDA_ERROR_INVALID_VALUE);
}

}  // namespace

MISUSE_PROGRAM
