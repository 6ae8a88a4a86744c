// A byte past the end of stream-ordered memory, freed in its stream.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUstream stream = make_stream();
  CUdeviceptr block = must_alloc_async(1000, stream);
  write_over(block, 1000, 1, stream);
  show("free", cuMemFreeAsync(block, stream));
  show("synchronise", cuStreamSynchronize(stream));
  MUST(cuMemFree_v2(must_alloc(1)));
}

}  // namespace

MISUSE_PROGRAM
