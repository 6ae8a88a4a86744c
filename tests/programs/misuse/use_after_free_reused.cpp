// The address was given out again before the write: it lands in another block.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  MUST(cuMemFree_v2(block));
  CUdeviceptr next = must_alloc(1000);
  write(wrong ? block : next, 1);
  free_and_synchronise(next);
}

}  // namespace

MISUSE_PROGRAM
