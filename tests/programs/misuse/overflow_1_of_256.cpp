// A byte past the end of 256.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(256);
  write_over(block, 256, 1);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
