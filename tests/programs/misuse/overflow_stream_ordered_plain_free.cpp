// Stream-ordered memory freed by cuMemFree.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUstream stream = make_stream();
  CUdeviceptr block = must_alloc_async(1000, stream);
  write_over(block, 1000, 1, stream);
  MUST(cuStreamSynchronize(stream));
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
