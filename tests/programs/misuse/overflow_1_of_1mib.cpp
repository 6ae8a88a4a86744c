// A byte past the end of 1 MiB.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1 << 20);
  write_over(block, 1 << 20, 1);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
