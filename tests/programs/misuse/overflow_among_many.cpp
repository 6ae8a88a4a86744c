// In one of two thousand blocks.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr blocks[2000];
  for (CUdeviceptr& each : blocks) {
    each = must_alloc(300);
  }
  write_over(blocks[1234], 300, 1);
  for (CUdeviceptr each : blocks) {
    MUST(cuMemFree_v2(each));
  }
  show("synchronise", cuCtxSynchronize());
}

}  // namespace

MISUSE_PROGRAM
