// A byte past the end of 100.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(100);
  write_over(block, 100, 1);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
