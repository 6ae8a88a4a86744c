// A capture begins at each instant of a free in turn, by another thread: it must end well, whatever the free does.
// On the simulated driver only, which tells when a driver call is about to be made. capture_race global|thread|relaxed
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>

#include "programs/program.h"

namespace {

CUcontext context = nullptr;
CUstream capturing = nullptr;
CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
std::atomic<int> calls_left{-1};
std::atomic<bool> began{false};
std::atomic<bool> may_end{false};
thread_local bool is_capturer = false;
std::thread capturer;
CUresult ended = CUDA_SUCCESS;
size_t nodes = 0;

void capture() {
  is_capturer = true;
  CUgraph graph = nullptr;
  CUdeviceptr p = 0;
  MUST(cuCtxSetCurrent(context));
  MUST(cuStreamBeginCapture_v2(capturing, mode));
  began = true;
  MUST(cuMemAllocAsync(&p, 1 << 20, capturing));
  while (!may_end) {
    std::this_thread::yield();
  }
  MUST(cuMemFreeAsync(p, capturing));
  ended = cuStreamEndCapture(capturing, &graph);
  nodes = 0;
  if (graph != nullptr) {
    MUST(cuGraphGetNodes(graph, nullptr, &nodes));
    MUST(cuGraphDestroy(graph));
  }
}

// The free goes on when the capture has begun, or when it waits for the free.
void before_call(const char*) {
  if (is_capturer || calls_left.fetch_sub(1) != 0) {
    return;
  }
  capturer = std::thread(capture);
  for (int i = 0; i < 20 && !began; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

int main(int, char** argv) {
  auto watch = reinterpret_cast<void (*)(void (*)(const char*))>(dlsym(RTLD_DEFAULT, "xlog_sim_before_calls"));
  std::string wanted = argv[1];
  mode = wanted == "global"   ? CU_STREAM_CAPTURE_MODE_GLOBAL
         : wanted == "thread" ? CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
                              : CU_STREAM_CAPTURE_MODE_RELAXED;
  context = start();
  CUstream working = nullptr;
  MUST(cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&working, CU_STREAM_NON_BLOCKING));
  int wrong = 0;
  int reached = 0;
  for (int n = 0; n < 40; ++n) {
    CUdeviceptr p = must_alloc(1 << 20);
    MUST(cuMemsetD8Async(p, 1, 1 << 20, working));
    began = may_end = false;
    calls_left = n;
    watch(before_call);
    CUresult result = cuMemFree_v2(p);
    watch(nullptr);
    bool happened = capturer.joinable();
    may_end = true;
    if (happened) {
      capturer.join();
      ++reached;
    }
    // In the global mode the free itself may be refused, which loses the capture: that is what the driver does.
    bool refused = mode == CU_STREAM_CAPTURE_MODE_GLOBAL && result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
                   ended == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (happened && !refused && (result != CUDA_SUCCESS || ended != CUDA_SUCCESS || nodes != 2)) {
      std::printf("capture at call %d: free %d, end %d, nodes %zu\n", n, result, ended, nodes);
      ++wrong;
    }
    if (result != CUDA_SUCCESS) {
      MUST(cuMemFree_v2(p));
    }
  }
  std::printf("%d wrong\n", wrong);
  std::fprintf(stderr, "a capture began at %d instants\n", reached);
  return wrong != 0 || reached == 0;
}
