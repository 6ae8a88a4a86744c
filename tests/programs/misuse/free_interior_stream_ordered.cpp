// A pointer into a block, in the order of a stream.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUstream stream = make_stream();
  CUdeviceptr block = must_alloc_async(1000, stream);
  show("free", wrong ? cuMemFreeAsync(block + 256, stream) : CUDA_ERROR_INVALID_VALUE);
  show("free", cuMemFreeAsync(block, stream));
  show("synchronise", cuStreamSynchronize(stream));
}

}  // namespace

MISUSE_PROGRAM
