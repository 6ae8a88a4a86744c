// A byte before the first: the zone of no block.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr below = must_alloc(4096);
  CUdeviceptr block = must_alloc(4096);
  write(wrong ? (below < block ? block : below) - 1 : block, 1);
  MUST(cuMemFree_v2(below));
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
