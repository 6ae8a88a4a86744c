// The program ends after a refusal for want of memory, with the block live.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  write_over(block, 1000, 1);
  show("synchronise", cuCtxSynchronize());
  CUdeviceptr none = 0;
  show("too much", cuMemAlloc_v2(&none, size_t{1} << 50));
  std::_Exit(0);
}

}  // namespace

MISUSE_PROGRAM
