// A byte past the end of a large block of an odd size.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc((3 << 20) + 7);
  write_over(block, (3 << 20) + 7, 1);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
