// A read of a block that was freed.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr other = must_alloc(1 << 20);
  CUdeviceptr block = must_alloc(1000);
  MUST(cuMemFree_v2(block));
  read(wrong ? block : other, other);
  show("synchronise", cuCtxSynchronize());
  MUST(cuMemFree_v2(other));
}

}  // namespace

MISUSE_PROGRAM
