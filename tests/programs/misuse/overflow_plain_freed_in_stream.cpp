// Plain memory freed in the order of a stream.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUstream stream = make_stream();
  CUdeviceptr block = must_alloc(1000);
  write_over(block, 1000, 1, stream);
  show("free", cuMemFreeAsync(block, stream));
  show("synchronise", cuStreamSynchronize(stream));
}

}  // namespace

MISUSE_PROGRAM
