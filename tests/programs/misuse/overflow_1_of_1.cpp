// A byte past the end of 1 byte.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1);
  write_over(block, 1, 1);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
