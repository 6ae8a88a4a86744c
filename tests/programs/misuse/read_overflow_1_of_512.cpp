// A byte past the end is read, where a block of the driver's ends.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(512);
  CUdeviceptr result = must_alloc(1);
  read(block + (wrong ? 512 : 511), result);
  MUST(cuMemFree_v2(result));
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
