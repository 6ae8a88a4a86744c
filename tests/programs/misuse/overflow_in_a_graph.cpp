// By a kernel of a graph; the block is plain.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUstream stream = make_stream();
  CUdeviceptr block = must_alloc(1000);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  write_over(block, 1000, 1, stream);
  MUST(cuStreamEndCapture(stream, &graph));
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  show("launch", cuGraphLaunch(exec, stream));
  MUST(cuStreamSynchronize(stream));
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
