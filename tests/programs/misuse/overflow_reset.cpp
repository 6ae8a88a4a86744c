// In a block that goes with a reset.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  write_over(block, 1000, 1);
  show("reset", cuDevicePrimaryCtxReset_v2(0));
}

}  // namespace

MISUSE_PROGRAM
