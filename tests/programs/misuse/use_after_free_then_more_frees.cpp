// Large blocks are freed after the write. Another block keeps the memory where it is.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  CUdeviceptr beside = must_alloc(1000);
  CUdeviceptr large[3];
  for (CUdeviceptr& each : large) {
    each = must_alloc(100 << 20);
  }
  MUST(cuMemFree_v2(block));
  write(wrong ? block + 500 : beside, 1);
  MUST(cuCtxSynchronize());
  for (CUdeviceptr each : large) {
    MUST(cuMemFree_v2(each));
  }
  free_and_synchronise(beside);
}

}  // namespace

MISUSE_PROGRAM
