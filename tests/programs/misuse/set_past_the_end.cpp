// The driver refuses it; nothing is written.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  show("set", wrong ? cuMemsetD8_v2(block + 999, 0, 2) : CUDA_ERROR_INVALID_VALUE);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
