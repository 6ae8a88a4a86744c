// The first free is refused, since a capture is under way.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUstream stream = make_stream();
  CUdeviceptr block = must_alloc(1000);
  write_over(block, 1000, 1);
  MUST(cuCtxSynchronize());
  CUgraph graph = nullptr;
  MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  show("free in a capture", cuMemFree_v2(block));
  show("end", cuStreamEndCapture(stream, &graph));
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
