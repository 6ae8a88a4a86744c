// Other large blocks are freed after the write.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr blocks[3];
  for (CUdeviceptr& each : blocks) {
    each = must_alloc(100 << 20);
  }
  MUST(cuMemFree_v2(blocks[0]));
  write(wrong ? blocks[0] + (50 << 20) : blocks[1], 1);
  MUST(cuCtxSynchronize());
  MUST(cuMemFree_v2(blocks[1]));
  free_and_synchronise(blocks[2]);
}

}  // namespace

MISUSE_PROGRAM
