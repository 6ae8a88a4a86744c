// What programs rely on in plain memory, whoever serves it: the same lines natively and under every backend.
#include <thread>
#include <vector>

#include "programs/program.h"

namespace {

constexpr size_t kMiB = 1 << 20;

void show(const char* what, long value) { std::printf("%s: %ld\n", what, value); }

size_t free_now() {
  size_t free = 0;
  MUST(cuMemGetInfo_v2(&free, nullptr));
  return free;
}

// Valid on every stream and for a host copy on return (rmm issue 2156).
void valid_everywhere() {
  CUstream a = nullptr;
  CUstream b = nullptr;
  MUST(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
  CUdeviceptr p = must_alloc(kMiB);
  CUdeviceptr q = must_alloc(kMiB);
  CUdeviceptr r = must_alloc(kMiB);
  std::vector<unsigned char> ones(kMiB, 1);
  MUST(cuMemsetD8Async(p, 1, kMiB, a));
  MUST(cuMemsetD8Async(q, 1, kMiB, b));
  show("host copy at once", cuMemcpyHtoD_v2(r, ones.data(), kMiB));
  show("free at once", cuMemFree_v2(p) + cuMemFree_v2(q) + cuMemFree_v2(r));
  MUST(cuStreamDestroy_v2(a));
  MUST(cuStreamDestroy_v2(b));
}

// In a relaxed capture: what NCCL's plugins do (aws-ofi-nccl PR 1342).
void in_a_capture() {
  CUstream capturing = nullptr;
  CUstream other = nullptr;
  CUgraph graph = nullptr;
  CUdeviceptr p = 0;
  size_t nodes = 0;
  unsigned char seven = 7;
  unsigned char back = 0;
  MUST(cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  MUST(cuThreadExchangeStreamCaptureMode(&mode));
  show("cuMemAlloc in a capture", cuMemAlloc_v2(&p, 2 * kMiB));
  show("copy before any launch", cuMemcpyHtoDAsync_v2(p, &seven, 1, other));
  MUST(cuStreamSynchronize(other));
  MUST(cuThreadExchangeStreamCaptureMode(&mode));
  show("end", cuStreamEndCapture(capturing, &graph));
  MUST(cuGraphGetNodes(graph, nullptr, &nodes));
  show("nodes", static_cast<long>(nodes));
  MUST(cuGraphDestroy(graph));
  MUST(cuMemcpyDtoH_v2(&back, p, 1));
  show("after the graph is gone", back);
  show("free", cuMemFree_v2(p));
}

// Almost all memory, again and again, with nothing that synchronises (kokkos issue 9307).
void most_of_it_again_and_again(int times) {
  size_t most = free_now() / 10 * 8;
  int failed = 0;
  for (int i = 0; i < times; ++i) {
    CUdeviceptr p = 0;
    failed += cuMemAlloc_v2(&p, most) != CUDA_SUCCESS;
    failed += cuMemFree_v2(p) != CUDA_SUCCESS;
  }
  show("of many times 80%, failed", failed);
}

// What a backend holds is there for other calls too (rmm issue 1245).
void other_sorts_of_memory() {
  size_t before = free_now();
  for (size_t bytes = 64 * kMiB; bytes <= before / 4; bytes *= 2) {
    CUdeviceptr p = must_alloc(bytes);
    MUST(cuMemFree_v2(p));
  }
  show("free memory is back", free_now() + 4 * kMiB >= before);
  CUdeviceptr p = 0;
  size_t pitch = 0;
  show("90% as pitched memory", cuMemAllocPitch_v2(&p, &pitch, kMiB, before / kMiB / 10 * 9, 4));
  MUST(cuMemFree_v2(p));
  for (size_t bytes = 64 * kMiB; bytes <= before / 4; bytes *= 2) {
    MUST(cuMemFree_v2(must_alloc(bytes)));
  }
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemGenericAllocationHandle handle = 0;
  show("90% for mapping", cuMemCreate(&handle, before / 10 * 9 / (2 * kMiB) * (2 * kMiB), &properties, 0));
  MUST(cuMemRelease(handle));
  CUmemoryPool standard = nullptr;
  CUmemoryPool current = nullptr;
  cuuint64_t threshold = 1;
  MUST(cuDeviceGetDefaultMemPool(&standard, 0));
  MUST(cuDeviceGetMemPool(&current, 0));
  MUST(cuMemPoolGetAttribute(standard, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
  show("default pool is current", standard == current);
  show("its threshold", static_cast<long>(threshold));
}

void wrong_frees() {
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr p = must_alloc(kMiB);
  CUdeviceptr q = must_alloc(kMiB);
  show("free", cuMemFree_v2(p));
  show("again", cuMemFree_v2(p));
  show("again in a stream", cuMemFreeAsync(p, stream));
  show("by the other call", cuMemFreeAsync(q, stream));
  MUST(cuStreamSynchronize(stream));
  show("then by the first", cuMemFree_v2(q));
  MUST(cuStreamDestroy_v2(stream));
}

void from_elsewhere(CUcontext context) {
  CUdeviceptr p = must_alloc(kMiB);
  CUdeviceptr q = must_alloc(kMiB);
  std::thread([&] {
    show("free without a context", cuMemFree_v2(p));
    CUcontext other = nullptr;
    MUST(cuCtxCreate_v2(&other, 0, 0));
    show("free in another context", cuMemFree_v2(q));
    CUdeviceptr own = must_alloc(kMiB);
    CUstream busy = nullptr;
    MUST(cuStreamCreate(&busy, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 100; ++i) {
      MUST(cuMemsetD8Async(own, 1, kMiB, busy));
    }
    MUST(cuCtxDestroy_v2(other));
    MUST(cuCtxSetCurrent(context));
    show("free of a block whose context is gone", cuMemFree_v2(own));
  }).join();
}

void through_resets() {
  for (int i = 0; i < 3; ++i) {
    CUdeviceptr kept = must_alloc(100 * kMiB);
    MUST(cuMemFree_v2(must_alloc(100 * kMiB)));
    size_t before = free_now();
    MUST(cuDevicePrimaryCtxReset_v2(0));
    CUcontext context = nullptr;
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    show("a reset gives the memory back", free_now() >= before + 98 * kMiB);
    show("free of what it ended", cuMemFree_v2(kept));
    CUdeviceptr p = 0;
    show("allocation after it", cuMemAlloc_v2(&p, kMiB));
    MUST(cuMemFree_v2(p));
  }
}

// The last release ends the context; whether it was the last is known only afterwards.
void through_a_release() {
  CUdeviceptr kept = must_alloc(100 * kMiB);
  MUST(cuMemFree_v2(must_alloc(50 * kMiB)));
  size_t before = free_now();
  unsigned flags = 0;
  int active = 1;
  while (active != 0) {
    MUST(cuDevicePrimaryCtxRelease_v2(0));
    MUST(cuDevicePrimaryCtxGetState(0, &flags, &active));
  }
  CUcontext context = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  MUST(cuMemFree_v2(must_alloc(kMiB)));
  show("a release gives the memory back", free_now() >= before + 98 * kMiB);
  show("free of what it ended", cuMemFree_v2(kept));
}

struct Ending {
  CUdeviceptr ptr = 0;
  ~Ending() {
    show("free when the process ends", cuMemFree_v2(ptr));
    show("allocation when the process ends", cuMemAlloc_v2(&ptr, kMiB));
  }
};

}  // namespace

// plain_memory [TIMES]
int main(int argc, char** argv) {
  CUcontext context = start();
  MUST(cuMemFree_v2(must_alloc(kMiB)));
  valid_everywhere();
  in_a_capture();
  most_of_it_again_and_again(argc > 1 ? std::atoi(argv[1]) : 1000);
  other_sorts_of_memory();
  wrong_frees();
  from_elsewhere(context);
  through_resets();
  through_a_release();
  static Ending ending;
  ending.ptr = must_alloc(kMiB);
  return 0;
}
