// An address that was never a block: the driver says so, and there is nothing to add.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() { show("free", wrong ? cuMemFree_v2(0xdead000) : CUDA_ERROR_INVALID_VALUE); }

}  // namespace

MISUSE_PROGRAM
