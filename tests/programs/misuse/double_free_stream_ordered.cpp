// Twice in the order of a stream.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUstream stream = make_stream();
  CUdeviceptr block = must_alloc_async(1000, stream);
  MUST(cuMemFreeAsync(block, stream));
  show("again", wrong ? cuMemFreeAsync(block, stream) : CUDA_ERROR_INVALID_VALUE);
  show("synchronise", cuStreamSynchronize(stream));
}

}  // namespace

MISUSE_PROGRAM
