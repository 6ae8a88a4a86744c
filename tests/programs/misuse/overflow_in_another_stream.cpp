// By a kernel in a non-blocking stream that is not waited for before the free.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUstream stream = make_stream();
  CUdeviceptr block = must_alloc(1000);
  write_over(block, 1000, 1, stream);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
