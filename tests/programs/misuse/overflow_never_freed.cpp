// In a block that lives until the program ends.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  write_over(block, 1000, 1);
  show("synchronise", cuCtxSynchronize());
}

}  // namespace

MISUSE_PROGRAM
