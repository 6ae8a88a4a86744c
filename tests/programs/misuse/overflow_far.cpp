// A byte 1 MiB past the end: no zone is there.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  CUdeviceptr other = must_alloc(4 << 20);  // so that there is memory
  write(wrong ? other + (1 << 20) : block, 1);
  MUST(cuMemFree_v2(other));
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
