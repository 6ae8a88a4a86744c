// A byte past the end is read.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  CUdeviceptr result = must_alloc(1);
  read(block + (wrong ? 1000 : 999), result);
  MUST(cuMemFree_v2(result));
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
