// The first byte of a freed block.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr other = must_alloc(1 << 20);
  CUdeviceptr block = must_alloc(100000);
  MUST(cuMemFree_v2(block));
  write(wrong ? block : other, 1);
  show("synchronise", cuCtxSynchronize());
  MUST(cuMemFree_v2(other));
}

}  // namespace

MISUSE_PROGRAM
