// The driver refuses it; nothing is written.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  char host[1001] = {};
  show("copy", wrong ? cuMemcpyHtoD_v2(block, host, 1001) : CUDA_ERROR_INVALID_VALUE);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
