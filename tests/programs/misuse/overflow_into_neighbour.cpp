// A long write over the end into the block behind it.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1024);
  CUdeviceptr other = must_alloc(1024);
  write_over(block, 1024, 1024);
  MUST(cuMemFree_v2(other));
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
