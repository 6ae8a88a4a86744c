// What a driver answers about the ends of contexts, threads and pools, and about events of one thread asked for by another. It prints
// one line a question; a real card's answers are tests/gpu/lifetimes.expected.
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "programs/program.h"

extern "C" CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode);
extern "C" CUresult cuCtxDetach(CUcontext context);

namespace {

constexpr size_t kMib = size_t{1} << 20;

size_t free_mib() {
  size_t free = 0;
  size_t total = 0;
  cuMemGetInfo_v2(&free, &total);
  return free / kMib;
}

void relax() {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  cuThreadExchangeStreamCaptureMode(&mode);
}

CUmemoryPool make_pool() {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  CUmemoryPool pool = nullptr;
  MUST(cuMemPoolCreate(&pool, &properties));
  cuuint64_t all = UINT64_MAX;
  MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  return pool;
}

size_t attribute(CUmemoryPool pool, CUmemPool_attribute which) {
  cuuint64_t value = 0;
  cuMemPoolGetAttribute(pool, which, &value);
  return static_cast<size_t>(value);
}

void frees_that_are_refused() {
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUdeviceptr none = 0xdead000;
  std::printf("cuMemFreeAsync of no block: %d\n", cuMemFreeAsync(none, stream));
  CUdeviceptr block = must_alloc(4096);
  std::printf("cuMemFreeAsync of a plain block, and a second time before it is reached: %d", cuMemFreeAsync(block, stream));
  std::printf(" %d\n", cuMemFreeAsync(block, stream));
  MUST(cuStreamDestroy_v2(stream));
}

void a_thread_that_ends_in_a_capture(CUcontext context) {
  std::thread([=] {
    cuCtxSetCurrent(context);
    cuStreamBeginCapture_v2_ptsz(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL);
  }).join();
  CUdeviceptr block = 0;
  CUresult made = cuMemAlloc_v2(&block, 4096);
  std::printf("cuMemAlloc after a thread ended inside a global capture of its own stream: %d\n", made);
  if (made == CUDA_SUCCESS) {
    cuMemFree_v2(block);
  }
}

void pool_memory_without_a_context() {
  CUmemoryPool pool = make_pool();
  CUstream stream = nullptr;
  CUdeviceptr block = 0;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuMemAllocFromPoolAsync(&block, 64 * kMib, pool, stream));
  MUST(cuStreamSynchronize(stream));
  std::thread([=] { std::printf("cuMemFree of pool memory in a thread without a context: %d\n", cuMemFree_v2(block)); }).join();
  std::printf("used by the pool then: %zu MiB\n", attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) / kMib);
  MUST(cuStreamDestroy_v2(stream));
  std::printf("cuMemPoolDestroy: %d\n", cuMemPoolDestroy(pool));
}

void what_a_pool_reserves() {
  CUmemoryPool pool = make_pool();
  CUstream one = nullptr;
  CUstream two = nullptr;
  MUST(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
  for (size_t bytes : {size_t{1}, size_t{512}, 3 * kMib, 33 * kMib, 100 * kMib}) {
    CUdeviceptr block = 0;
    MUST(cuMemAllocFromPoolAsync(&block, bytes, pool, one));
    std::printf("a block of %zu bytes: used %zu, reserved %zu MiB", bytes, attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT),
                attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) / kMib);
    MUST(cuMemFreeAsync(block, one));
    std::printf("; freed: used %zu\n", attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT));
    MUST(cuStreamSynchronize(one));
    MUST(cuMemPoolTrimTo(pool, 0));
  }
  // A free that its stream has not reached: a stream that waits for a value holds it back.
  CUdeviceptr flag = must_alloc(4);
  MUST(cuMemsetD32_v2(flag, 0, 1));
  CUdeviceptr block = 0;
  MUST(cuMemAllocFromPoolAsync(&block, 256 * kMib, pool, one));
  bool holds = cuStreamWaitValue32_v2(one, flag, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS;
  MUST(cuMemFreeAsync(block, one));
  std::printf("held %d, freed and not reached: used %zu, reserved %zu MiB\n", holds ? 1 : 0,
              attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT) / kMib, attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) / kMib);
  MUST(cuMemPoolTrimTo(pool, 0));
  std::printf("trimmed: reserved %zu MiB\n", attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) / kMib);
  CUdeviceptr other = 0;
  CUresult got = cuMemAllocFromPoolAsync(&other, 256 * kMib, pool, two);
  std::printf("another stream: %d, reserved %zu MiB\n", got, attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) / kMib);
  MUST(cuStreamWriteValue32_v2(two, flag, 1, 0));
  MUST(cuStreamSynchronize(one));
  MUST(cuStreamSynchronize(two));
  if (got == CUDA_SUCCESS) {
    MUST(cuMemFree_v2(other));
  }
  MUST(cuMemPoolTrimTo(pool, 0));
  std::printf("at the end: reserved %zu MiB, destroyed %d\n", attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) / kMib,
              cuMemPoolDestroy(pool));
  MUST(cuMemFree_v2(flag));
}

// One thread captures a stream over and over and records an event of its own outside; another asks for that event.
void events_asked_beside_captures(CUcontext context) {
  std::atomic<bool> stop{false};
  std::atomic<int> lost{0};
  std::atomic<int> odd{0};
  CUstream stream = nullptr;
  CUevent event = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  MUST(cuEventRecord(event, stream));
  std::thread asks([&] {
    cuCtxSetCurrent(context);
    relax();
    while (!stop) {
      CUresult answer = cuEventQuery(event);
      odd += answer != CUDA_SUCCESS && answer != CUDA_ERROR_NOT_READY ? 1 : 0;
    }
  });
  for (int i = 0; i < 200'000; ++i) {
    CUgraph graph = nullptr;
    MUST(cuEventRecord(event, stream));
    CUresult begun = cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL);
    CUresult ended = cuStreamEndCapture(stream, &graph);
    lost += begun != CUDA_SUCCESS || ended != CUDA_SUCCESS ? 1 : 0;
    if (graph != nullptr) {
      cuGraphDestroy(graph);
    }
  }
  stop = true;
  asks.join();
  std::printf("200000 captures beside questions about an event of that stream: %d lost, %d odd answers\n", lost.load(), odd.load());
}

void a_detached_context() {
  CUcontext context = nullptr;
  CUcontext before = nullptr;
  cuCtxGetCurrent(&before);
  size_t free_before = free_mib();
  MUST(cuCtxCreate_v2(&context, 0, 0));
  must_alloc(512 * kMib);
  std::printf("cuCtxDetach: %d", cuCtxDetach(context));
  cuCtxSetCurrent(before);
  size_t now = free_mib();
  std::printf(", its memory is back: %d\n", now + 256 > free_before ? 1 : 0);
}

// Memory that was made while a green context was current, when that ends and the primary context stays.
void a_green_context() {
  CUdevResource all{};
  CUdevResource part{};
  CUdevResource rest{};
  CUdevResourceDesc description = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  CUcontext before = nullptr;
  cuCtxGetCurrent(&before);
  unsigned groups = 1;
  if (cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS ||
      cuDevSmResourceSplitByCount(&part, &groups, &all, &rest, 0, 8) != CUDA_SUCCESS ||
      cuDevResourceGenerateDesc(&description, &part, 1) != CUDA_SUCCESS ||
      cuGreenCtxCreate(&green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM) != CUDA_SUCCESS ||
      cuCtxFromGreenCtx(&context, green) != CUDA_SUCCESS) {
    std::printf("no green contexts here\n");
    return;
  }
  MUST(cuCtxSetCurrent(context));
  CUdeviceptr block = must_alloc(512 * kMib);
  CUcontext owner = nullptr;
  CUresult asked = cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, block);
  std::printf("a block made in a green context: attribute %d, the context is the primary %d, the green %d\n", asked,
              owner == before ? 1 : 0, owner == context ? 1 : 0);
  MUST(cuCtxSetCurrent(before));
  size_t with = free_mib();
  std::printf("cuGreenCtxDestroy: %d", cuGreenCtxDestroy(green));
  std::printf(", its memory is back: %d", free_mib() > with + 256 ? 1 : 0);
  std::printf(", free of its block: %d\n", cuMemFree_v2(block));
}

// Requests of a card that is all but full, when what would serve them is in a pool.
void a_full_card() {
  CUmemoryPool pool = make_pool();
  CUstream one = nullptr;
  CUstream two = nullptr;
  MUST(cuStreamCreate(&one, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&two, CU_STREAM_NON_BLOCKING));
  CUdeviceptr flag = must_alloc(4);
  CUdeviceptr block = 0;
  CUdeviceptr other = 0;
  MUST(cuMemsetD32_v2(flag, 0, 1));
  MUST(cuMemAllocFromPoolAsync(&block, 1024 * kMib, pool, one));
  MUST(cuStreamSynchronize(one));
  std::vector<CUdeviceptr> fill;
  for (size_t step = 8192 * kMib; step >= 2 * kMib; step /= 2) {
    CUdeviceptr each = 0;
    while (cuMemAlloc_v2(&each, step) == CUDA_SUCCESS) {
      fill.push_back(each);
    }
  }
  std::printf("a full card: free %zu MiB\n", free_mib());
  MUST(cuMemFreeAsync(block, one));
  std::printf("freed and not synchronised: another stream of the pool gets %d", cuMemAllocFromPoolAsync(&other, 1024 * kMib, pool, two));
  if (other != 0) {
    MUST(cuMemFreeAsync(other, two));
  }
  MUST(cuStreamSynchronize(two));
  MUST(cuStreamSynchronize(one));
  CUdeviceptr plain = 0;
  std::printf(", plain memory then %d", cuMemAlloc_v2(&plain, 512 * kMib));
  CUmemoryPool second = make_pool();
  CUdeviceptr from_second = 0;
  std::printf(", another pool %d\n", cuMemAllocFromPoolAsync(&from_second, 512 * kMib, second, one));
  block = 0;
  std::printf("the pool's own again: %d", cuMemAllocFromPoolAsync(&block, 1024 * kMib, pool, one));
  if (block != 0) {
    bool held = cuStreamWaitValue32_v2(one, flag, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS;
    MUST(cuMemFreeAsync(block, one));
    std::atomic<bool> answered{false};
    std::atomic<bool> before{false};
    std::thread helper([&] {
      usleep(1'500'000);
      before = answered.load();
      CUstream third = nullptr;
      cuCtxSetCurrent(nullptr);
      CUcontext context = nullptr;
      cuDevicePrimaryCtxRetain(&context, 0);
      cuCtxSetCurrent(context);
      cuStreamCreate(&third, CU_STREAM_NON_BLOCKING);
      cuStreamWriteValue32_v2(third, flag, 1, 0);
    });
    other = 0;
    CUresult got = cuMemAllocFromPoolAsync(&other, 1024 * kMib, pool, two);
    answered = true;
    helper.join();
    std::printf("; its free held back %d: another stream gets %d, answered before the stream went on %d\n", held ? 1 : 0, got,
                before.load() ? 1 : 0);
  }
  for (CUdeviceptr each : fill) {
    cuMemFree_v2(each);
  }
}

// What a question about a pool costs.
void the_price_of_a_question() {
  CUmemoryPool pool = make_pool();
  cuuint64_t value = 0;
  timespec from{};
  timespec to{};
  clock_gettime(CLOCK_MONOTONIC, &from);
  for (int i = 0; i < 100'000; ++i) {
    cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &value);
  }
  clock_gettime(CLOCK_MONOTONIC, &to);
  double ns = (static_cast<double>(to.tv_sec - from.tv_sec) * 1e9 + static_cast<double>(to.tv_nsec - from.tv_nsec)) / 1e5;
  std::fprintf(stderr, "cuMemPoolGetAttribute: %.0f ns\n", ns);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "full") == 0) {
    start();
    the_price_of_a_question();
    a_full_card();
    return 0;
  }
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  frees_that_are_refused();
  pool_memory_without_a_context();
  what_a_pool_reserves();
  events_asked_beside_captures(context);
  a_detached_context();
  a_green_context();
  a_thread_that_ends_in_a_capture(context);
  return 0;
}
