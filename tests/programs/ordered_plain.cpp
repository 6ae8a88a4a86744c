// Plain memory that is freed in the order of streams, under a limit of 64 MiB: `ordered_plain sorts | held | captures`.
#include <unistd.h>

#include <atomic>
#include <string_view>
#include <thread>
#include <vector>

#include "programs/program.h"

namespace {

constexpr size_t kBytes = 40 << 20;

void show(const char* what, CUresult result) { std::printf("%s: %d\n", what, result); }

CUdeviceptr taken(const char* what) {
  CUdeviceptr block = 0;
  show(what, cuMemAlloc_v2(&block, kBytes));
  return block;
}

// Each block fits only when the one before is known to be gone.
void sorts(CUcontext context) {
  CUstream stream = nullptr;
  CUstream blocking = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
  MUST(cuMemFreeAsync(taken("first"), stream));
  MUST(cuMemFreeAsync(taken("after a stream"), blocking));
  MUST(cuMemFreeAsync(taken("after a blocking stream"), nullptr));
  MUST(cuMemFreeAsync(taken("after the legacy stream"), CU_STREAM_PER_THREAD));
  MUST(cuMemFreeAsync_ptsz(taken("after the thread's own stream"), nullptr));
  CUdeviceptr block = taken("after the same by the other ABI");
  std::thread([&] {
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemFreeAsync_ptsz(block, nullptr));
  }).join();
  block = taken("after the own stream of a thread that ended");
  CUstream passing = nullptr;
  MUST(cuStreamCreate(&passing, CU_STREAM_NON_BLOCKING));
  MUST(cuMemFreeAsync(block, passing));
  MUST(cuStreamDestroy_v2(passing));
  block = taken("after a stream that was destroyed");
  CUcontext other = nullptr;
  MUST(cuCtxCreate_v2(&other, 0, 0));
  CUstream elsewhere = nullptr;
  MUST(cuStreamCreate(&elsewhere, CU_STREAM_NON_BLOCKING));
  MUST(cuMemFreeAsync(block, stream));  // another context is current
  block = taken("after a stream of another context");
  MUST(cuMemFreeAsync(block, elsewhere));
  MUST(cuCtxDestroy_v2(other));
  MUST(cuCtxSetCurrent(context));
  MUST(cuMemFree_v2(taken("after a context that ended")));
}

// Behind work that is not done the memory is still taken, whatever became of the stream.
void held(CUcontext) {
  CUstream stream = nullptr;
  CUstream opener = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&opener, CU_STREAM_NON_BLOCKING));
  CUdeviceptr flag = must_alloc(4);
  MUST(cuMemsetD8_v2(flag, 0, 4));
  MUST(cuCtxSynchronize());
  CUdeviceptr block = taken("first");
  MUST(cuStreamWaitValue32_v2(stream, flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
  MUST(cuMemFreeAsync(block, stream));
  CUdeviceptr none = taken("the free is not done");
  std::printf("nothing was given: %d\n", none == 0);
  MUST(cuMemsetD8Async(flag, 1, 4, opener));
  MUST(cuStreamSynchronize(stream));
  MUST(cuMemFree_v2(taken("it is done")));
}

// Threads that capture, beside others that free in stream order and look: no capture is lost.
void captures(CUcontext context) {
  std::atomic<bool> stop{false};
  std::atomic<int> lost{0};
  std::atomic<long> frees{0};
  auto relax = [] {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    MUST(cuThreadExchangeStreamCaptureMode(&mode));
  };
  std::vector<std::thread> all;
  for (int t = 0; t < 2; ++t) {
    all.emplace_back([&] {
      MUST(cuCtxSetCurrent(context));
      relax();
      CUstream stream = nullptr;
      MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      for (int i = 0; i < 2000; ++i) {
        CUdeviceptr block = 0;
        if (cuMemAlloc_v2(&block, 4096) == CUDA_SUCCESS) {
          MUST(cuMemFreeAsync(block, stream));
        }
        CUgraph graph = nullptr;
        CUresult begin = cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED);
        CUresult end = cuStreamEndCapture(stream, &graph);
        lost += begin != CUDA_SUCCESS || end != CUDA_SUCCESS ? 1 : 0;
        if (graph != nullptr) {
          MUST(cuGraphDestroy(graph));
        }
      }
      stop = true;
    });
  }
  all.emplace_back([&] {
    MUST(cuCtxSetCurrent(context));
    relax();
    while (!stop) {
      CUdeviceptr block = 0;
      size_t free = 0;
      size_t total = 0;
      if (cuMemAlloc_v2(&block, kBytes) == CUDA_SUCCESS) {
        MUST(cuMemFreeAsync_ptsz(block, nullptr));
        ++frees;
      }
      MUST(cuMemGetInfo_v2(&free, &total));
    }
  });
  for (std::thread& each : all) {
    each.join();
  }
  MUST(cuCtxSynchronize());
  size_t free = 0;
  size_t total = 0;
  MUST(cuMemGetInfo_v2(&free, &total));
  std::printf("captures lost: %d, frees beside them: %d, all of it is free: %d\n", lost.load(), frees > 0, free == total);
}

}  // namespace

int main(int, char** arguments) {
  std::string_view what = arguments[1];
  CUcontext context = start();
  if (what == "sorts") {
    sorts(context);
  } else if (what == "held") {
    held(context);
  } else if (what == "captures") {
    captures(context);
  }
  return 0;
}
