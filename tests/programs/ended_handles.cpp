// Uses of handles that ended, and a question about a stream beside another thread's call on it: a hostile driver's process ends.
//   ended_handles context|stream|event|pool|graph|exec|question
#include <atomic>
#include <string>
#include <thread>

#include "programs/program.h"

namespace {

void question() {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  MUST(cuCtxGetCurrent(&context));
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::atomic<bool> done{false};
  std::thread other([&] {
    MUST(cuCtxSetCurrent(context));
    while (!done) {
      CUstreamCaptureStatus status{};
      MUST(cuStreamIsCapturing(stream, &status));
    }
  });
  for (int i = 0; i < 2000; ++i) {
    CUgraph graph = nullptr;
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    MUST(cuStreamEndCapture(stream, &graph));
    MUST(cuGraphDestroy(graph));
  }
  done = true;
  other.join();
}

void use_after_end(const std::string& which) {
  CUstream stream = nullptr;
  CUevent event = nullptr;
  CUmemoryPool pool = nullptr;
  CUcontext context = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&event, 0));
  MUST(cuMemPoolCreate(&pool, &properties));
  MUST(cuGraphCreate(&graph, 0));
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  MUST(cuStreamDestroy_v2(stream));
  MUST(cuEventDestroy_v2(event));
  MUST(cuMemPoolDestroy(pool));
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
  MUST(cuCtxCreate_v2(&context, 0, 0));
  MUST(cuCtxDestroy_v2(context));
  CUresult got = which == "context"  ? cuCtxSetCurrent(context)
                 : which == "stream" ? cuStreamSynchronize(stream)
                 : which == "event"  ? cuEventQuery(event)
                 : which == "pool"   ? cuMemPoolTrimTo(pool, 0)
                 : which == "graph"  ? cuGraphDestroy(graph)
                                     : cuGraphLaunch(exec, nullptr);
  std::printf("%s: %d\n", which.c_str(), static_cast<int>(got));
}

}  // namespace

int main(int argc, char** argv) {
  std::string which = argc > 1 ? argv[1] : "question";
  start();
  which == "question" ? question() : use_after_end(which);
}
