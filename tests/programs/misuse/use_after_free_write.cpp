// A write into a block that was freed.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr other = must_alloc(1 << 20);  // keeps the memory there
  CUdeviceptr block = must_alloc(1000);
  MUST(cuMemFree_v2(block));
  write(wrong ? block + 10 : other, 4);
  show("synchronise", cuCtxSynchronize());
  MUST(cuMemFree_v2(other));
}

}  // namespace

MISUSE_PROGRAM
