// The same in the legacy stream.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc_async(1000, nullptr);
  write_over(block, 1000, 1);
  show("free", cuMemFreeAsync(block, nullptr));
  show("synchronise", cuCtxSynchronize());
}

}  // namespace

MISUSE_PROGRAM
