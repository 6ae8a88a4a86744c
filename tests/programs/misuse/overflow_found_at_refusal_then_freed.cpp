// A refusal for want of memory, then the free: one finding.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  write_over(block, 1000, 1);
  MUST(cuCtxSynchronize());
  CUdeviceptr none = 0;
  show("too much", cuMemAlloc_v2(&none, size_t{1} << 50));
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
