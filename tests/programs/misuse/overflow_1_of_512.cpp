// A byte past the end of a block that fills its step of 512.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(512);
  write_over(block, 512, 1);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
