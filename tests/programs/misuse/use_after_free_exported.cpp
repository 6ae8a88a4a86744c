// A block that another process may have: it is not held back.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr other = must_alloc(1 << 20);
  CUdeviceptr block = must_alloc(1000);
  CUipcMemHandle handle;
  cuIpcGetMemHandle(&handle, block);  // a backend may refuse it
  MUST(cuMemFree_v2(block));
  write(wrong ? block : other, 4);
  show("synchronise", cuCtxSynchronize());
  MUST(cuMemFree_v2(other));
}

}  // namespace

MISUSE_PROGRAM
