// Prints what the driver answers while a stream captures: which calls it refuses, which of them lose the capture, and
// what a thread in the relaxed mode may do. The same lines must come from a real GPU and from the simulated driver.
#include <functional>
#include <string>
#include <thread>

#include "programs/program.h"

namespace {

CUcontext context = nullptr;
CUmemoryPool own_pool = nullptr;
CUstream capturing = nullptr;
CUstream beside = nullptr;
CUevent event = nullptr;

CUmemoryPool make_pool() {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  MUST(cuMemPoolCreate(&pool, &properties));
  return pool;
}

CUdeviceptr pool_block() {
  CUdeviceptr p = 0;
  MUST(cuMemAllocFromPoolAsync(&p, 1 << 20, own_pool, beside));
  MUST(cuStreamSynchronize(beside));
  return p;
}

struct Probe {
  const char* name;
  std::function<CUresult()> call;
};

CUresult in_relaxed(const std::function<CUresult()>& call) {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  MUST(cuThreadExchangeStreamCaptureMode(&mode));
  CUresult result = call();
  MUST(cuThreadExchangeStreamCaptureMode(&mode));
  return result;
}

// One capture, with one call in it or beside it.
void beside_capture(CUstreamCaptureMode mode, bool other_thread, const Probe& probe) {
  static constexpr const char* kModes[] = {"global", "thread", "relaxed"};
  CUdeviceptr word = must_alloc(4);
  MUST(cuStreamBeginCapture_v2(capturing, mode));
  CUresult result = CUDA_SUCCESS;
  auto work = [&] { result = probe.call(); };
  if (other_thread) {
    std::thread([&] {
      MUST(cuCtxSetCurrent(context));
      work();
    }).join();
  } else {
    work();
  }
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  MUST(cuStreamIsCapturing(capturing, &status));
  cuMemsetD8Async(word, 1, 4, capturing);
  CUgraph graph = nullptr;
  CUresult end = cuStreamEndCapture(capturing, &graph);
  size_t nodes = 0;
  if (graph != nullptr) {
    MUST(cuGraphGetNodes(graph, nullptr, &nodes));
    MUST(cuGraphDestroy(graph));
  }
  std::printf("%s, %s thread: %s: %d, status %d, end %d, nodes %zu\n", kModes[mode], other_thread ? "other" : "same", probe.name, result,
              status, end, nodes);
  MUST(cuCtxSynchronize());
  MUST(cuMemFree_v2(word));
}

void all_calls() {
  CUdeviceptr plain = 0;
  CUdeviceptr pooled = 0;
  CUdeviceptr out = 0;
  const Probe probes[] = {
      {"cuMemAlloc", [&] { return cuMemAlloc_v2(&out, 16); }},
      {"cuMemFree of a plain block", [&] { return cuMemFree_v2(plain); }},
      {"cuMemFree of a pool block", [&] { return cuMemFree_v2(pooled); }},
      {"cuMemFree of garbage", [&] { return cuMemFree_v2(0xdead000); }},
      {"cuMemFreeAsync of a plain block, capturing stream", [&] { return cuMemFreeAsync(plain, capturing); }},
      {"cuMemFreeAsync of a pool block, capturing stream", [&] { return cuMemFreeAsync(pooled, capturing); }},
      {"cuMemFreeAsync of a pool block, stream beside", [&] { return cuMemFreeAsync(pooled, beside); }},
      {"cuMemAllocFromPoolAsync, stream beside", [&] { return cuMemAllocFromPoolAsync(&out, 1 << 20, own_pool, beside); }},
      {"cuStreamSynchronize beside", [&] { return cuStreamSynchronize(beside); }},
      {"cuStreamWaitEvent beside", [&] { return cuStreamWaitEvent(beside, event, 0); }},
      {"cuEventSynchronize", [&] { return cuEventSynchronize(event); }},
      {"cuEventQuery", [&] { return cuEventQuery(event); }},
      {"cuEventRecord beside", [&] { return cuEventRecord(event, beside); }},
      {"cuCtxRecordEvent", [&] { return cuCtxRecordEvent(context, event); }},
      {"cuCtxSynchronize", [&] { return cuCtxSynchronize(); }},
      {"cuMemPoolTrimTo", [&] { return cuMemPoolTrimTo(own_pool, 0); }},
      {"cuMemPoolGetAttribute",
       [&] {
         cuuint64_t bytes = 0;
         return cuMemPoolGetAttribute(own_pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
       }},
      {"cuMemGetInfo", [&] { return cuMemGetInfo_v2(nullptr, nullptr); }},
      {"cuStreamCreate",
       [&] {
         CUstream made = nullptr;
         CUresult r = cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);
         return r != CUDA_SUCCESS ? r : cuStreamDestroy_v2(made);
       }},
      {"cuEventCreate",
       [&] {
         CUevent made = nullptr;
         CUresult r = cuEventCreate(&made, CU_EVENT_DISABLE_TIMING);
         return r != CUDA_SUCCESS ? r : cuEventDestroy_v2(made);
       }},
      {"relaxed: cuMemAlloc", [&] { return in_relaxed([&] { return cuMemAlloc_v2(&out, 16); }); }},
      {"relaxed: cuMemFree of a plain block", [&] { return in_relaxed([&] { return cuMemFree_v2(plain); }); }},
      {"relaxed: pool alloc, synchronise, free",
       [&] {
         return in_relaxed([&] {
           CUdeviceptr p = 0;
           CUresult r = cuMemAllocFromPoolAsync(&p, 1 << 20, own_pool, beside);
           r = r == CUDA_SUCCESS ? cuStreamSynchronize(beside) : r;
           return r == CUDA_SUCCESS ? cuMemFreeAsync(p, beside) : r;
         });
       }},
      {"relaxed: event wait, synchronise, query",
       [&] {
         return in_relaxed([&] {
           CUresult r = cuStreamWaitEvent(beside, event, 0);
           r = r == CUDA_SUCCESS ? cuEventSynchronize(event) : r;
           return r == CUDA_SUCCESS ? cuEventQuery(event) : r;
         });
       }},
      {"relaxed: cuCtxRecordEvent", [&] { return in_relaxed([&] { return cuCtxRecordEvent(context, event); }); }},
      {"relaxed: stream and event made, trimmed",
       [&] {
         return in_relaxed([&] {
           CUstream made = nullptr;
           CUevent also = nullptr;
           CUresult r = cuStreamCreate(&made, CU_STREAM_NON_BLOCKING);
           r = r == CUDA_SUCCESS ? cuEventCreate(&also, CU_EVENT_DISABLE_TIMING) : r;
           r = r == CUDA_SUCCESS ? cuStreamDestroy_v2(made) : r;
           r = r == CUDA_SUCCESS ? cuEventDestroy_v2(also) : r;
           return r == CUDA_SUCCESS ? cuMemPoolTrimTo(own_pool, 0) : r;
         });
       }},
  };
  for (auto mode : {CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_RELAXED}) {
    for (bool other : {false, true}) {
      for (const Probe& probe : probes) {
        plain = must_alloc(1 << 20);
        pooled = pool_block();
        out = 0;
        MUST(cuEventRecord(event, beside));
        MUST(cuStreamSynchronize(beside));
        beside_capture(mode, other, probe);
        cuMemFree_v2(plain);
        cuMemFree_v2(pooled);
        if (out != 0) {
          cuMemFree_v2(out);
        }
      }
    }
  }
}

void ends() {
  CUgraph graph = nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  auto show = [&](const char* what, CUresult r) {
    CUresult asked = cuStreamIsCapturing(capturing, &status);
    std::printf("%s: %d, then %d status %d\n", what, r, asked, status);
  };
  show("end without begin", cuStreamEndCapture(capturing, &graph));
  show("begin on the legacy stream", cuStreamBeginCapture_v2(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL));
  show("begin", cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  show("begin twice", cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  std::thread([&] {
    MUST(cuCtxSetCurrent(context));
    show("end by another thread", cuStreamEndCapture(capturing, &graph));
  }).join();
  show("end", cuStreamEndCapture(capturing, &graph));
  show("begin relaxed", cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
  MUST(cuEventRecord(event, capturing));
  MUST(cuStreamWaitEvent(beside, event, 0));
  show("end, another stream not joined", cuStreamEndCapture(capturing, &graph));
  CUresult asked = cuStreamIsCapturing(beside, &status);
  std::printf("that stream: %d status %d\n", asked, status);
  show("begin", cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CUdeviceptr p = 0;
  CUdeviceptr other = 0;
  std::printf("captured allocation: %d\n", cuMemAllocAsync(&p, 1 << 20, capturing));
  std::printf("captured free: %d\n", cuMemFreeAsync(p, capturing));
  show("end", cuStreamEndCapture(capturing, &graph));
  size_t nodes = 0;
  MUST(cuGraphGetNodes(graph, nullptr, &nodes));
  std::printf("nodes: %zu\n", nodes);
  std::printf("free of the graph's: %d\n", cuMemFree_v2(p));
  MUST(cuGraphDestroy(graph));
  MUST(cuMemAlloc_v2(&other, 16));
  CUstream passing = nullptr;
  MUST(cuStreamCreate(&passing, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamBeginCapture_v2(passing, CU_STREAM_CAPTURE_MODE_GLOBAL));
  std::printf("capturing stream destroyed: %d\n", cuStreamDestroy_v2(passing));
  std::printf("then cuMemFree: %d\n", cuMemFree_v2(other));
}

}  // namespace

int main() {
  context = start();
  own_pool = make_pool();
  MUST(cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  all_calls();
  ends();
  return 0;
}
