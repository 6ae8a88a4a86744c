// A write after the free in the same stream.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUstream stream = make_stream();
  CUdeviceptr other = must_alloc_async(1000, stream);
  CUdeviceptr block = must_alloc_async(1000, stream);
  MUST(cuMemFreeAsync(block, stream));
  write(wrong ? block : other, 4, stream);
  show("synchronise", cuStreamSynchronize(stream));
  MUST(cuMemFreeAsync(other, stream));
}

}  // namespace

MISUSE_PROGRAM
