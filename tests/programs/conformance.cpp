// Prints the driver's answers where its documentation is open. The same lines must come from a real GPU and from the
// simulated driver, with the library preloaded and without.
#include <sys/wait.h>
#include <unistd.h>

#include <thread>
#include <vector>

#include "programs/program.h"

namespace {

void line(const char* what, long value) { std::printf("%s: %ld\n", what, value); }

constexpr CUdeviceptr kJunk = 0xdead0000;

// Whether a call wrote its output.
template <class Call>
void with_output(const char* what, Call call) {
  CUdeviceptr p = kJunk;
  line(what, call(&p));
  line(" ptr written", p != kJunk);
}

// Made after the driver was initialised, so destroyed before its exit handler: the driver is still there.
struct AtExit {
  ~AtExit() {
    CUdeviceptr p = 0;
    line("alloc at static destruction", cuMemAlloc_v2(&p, 16));
  }
};

void degenerate_arguments() {
  with_output("cuMemAlloc(0)", [](CUdeviceptr* p) { return cuMemAlloc_v2(p, 0); });
  line("cuMemAlloc(NULL,16)", cuMemAlloc_v2(nullptr, 16));
  with_output("cuMemAlloc(SIZE_MAX)", [](CUdeviceptr* p) { return cuMemAlloc_v2(p, SIZE_MAX); });
  with_output("cuMemAlloc(1<<50)", [](CUdeviceptr* p) { return cuMemAlloc_v2(p, size_t{1} << 50); });
  CUdeviceptr p = kJunk;
  line("cuMemAllocAsync(0)", cuMemAllocAsync(&p, 0, nullptr));
  line(" ptr value zero", p == 0);
  line("cuMemAllocAsync(NULL)", cuMemAllocAsync(nullptr, 16, nullptr));
  with_output("cuMemAllocAsync(1<<50)", [](CUdeviceptr* q) { return cuMemAllocAsync(q, size_t{1} << 50, nullptr); });
  with_output("cuMemAllocAsync(SIZE_MAX)", [](CUdeviceptr* q) { return cuMemAllocAsync(q, SIZE_MAX, nullptr); });
  line("cuMemFree(0)", cuMemFree_v2(0));
  line("cuMemFreeAsync(0)", cuMemFreeAsync(0, nullptr));
}

void pitched() {
  CUdeviceptr p = 0;
  CUdeviceptr base = 0;
  size_t pitch = 0;
  size_t size = 0;
  line("pitch width0", cuMemAllocPitch_v2(&p, &pitch, 0, 10, 4));
  line("pitch height0", cuMemAllocPitch_v2(&p, &pitch, 10, 0, 4));
  line("pitch elem 3", cuMemAllocPitch_v2(&p, &pitch, 100, 10, 3));
  line("pitch 1000003x100", cuMemAllocPitch_v2(&p, &pitch, 1000003, 100, 4));
  line(" pitch", static_cast<long>(pitch));
  MUST(cuMemGetAddressRange_v2(&base, &size, p));
  line(" range size", static_cast<long>(size));
  line(" base is p", base == p);
  MUST(cuMemFree_v2(p));
  line("pitch 100x10", cuMemAllocPitch_v2(&p, &pitch, 100, 10, 4));
  line(" pitch", static_cast<long>(pitch));
  MUST(cuMemGetAddressRange_v2(&base, &size, p));
  line(" range size", static_cast<long>(size));
  MUST(cuMemFree_v2(p));
}

void frees() {
  CUdeviceptr p = must_alloc(1000);
  line("free", cuMemFree_v2(p));
  line("double free", cuMemFree_v2(p));
  p = must_alloc(1000);
  line("free interior +256", cuMemFree_v2(p + 256));
  line("free interior +1", cuMemFree_v2(p + 1));
  int on_host = 0;
  line("free host ptr", cuMemFree_v2(reinterpret_cast<CUdeviceptr>(&on_host)));
  line("free garbage", cuMemFree_v2(0xdead000));
  line("freeAsync of cuMemAlloc ptr", cuMemFreeAsync(p, nullptr));
  line(" then sync", cuCtxSynchronize());
  line(" then free again", cuMemFree_v2(p));
  line("allocAsync", cuMemAllocAsync(&p, 1000, nullptr));
  MUST(cuCtxSynchronize());
  line("cuMemFree of pool ptr", cuMemFree_v2(p));
  line("double cuMemFree of pool ptr", cuMemFree_v2(p));
  MUST(cuMemAllocAsync(&p, 1000, nullptr));
  MUST(cuMemFreeAsync(p, nullptr));
  line("double freeAsync", cuMemFreeAsync(p, nullptr));
  line("freeAsync garbage", cuMemFreeAsync(0xdead000, nullptr));
  MUST(cuMemAllocAsync(&p, 1000, nullptr));
  line("freeAsync interior", cuMemFreeAsync(p + 256, nullptr));
  MUST(cuMemFreeAsync(p, nullptr));
  MUST(cuCtxSynchronize());
}

void range_of(const char* what, size_t bytes, CUdeviceptr p, bool past_end) {
  CUdeviceptr base = 0;
  size_t size = 0;
  CUresult r = cuMemGetAddressRange_v2(&base, &size, p);
  std::printf("range of %s(%zu): r %d base==p %d size %zu align512 %d\n", what, bytes, r, base == p, size, p % 512 == 0);
  if (past_end) {
    std::printf(" at p+size: r %d\n", cuMemGetAddressRange_v2(&base, &size, p + bytes));
  }
}

// Frees by a thread that has no context, or another device's, are the block's own context's affair.
void free_elsewhere() {
  CUdeviceptr p = must_alloc(1000);
  CUdeviceptr q = 0;
  MUST(cuMemAllocAsync(&q, 1000, nullptr));
  MUST(cuCtxSynchronize());
  std::thread([&] {
    line("free by a thread without context", cuMemFree_v2(p));
    line(" and again", cuMemFree_v2(p));
    line("free of pool ptr by a thread without context", cuMemFree_v2(q));
  }).join();
}

void ranges() {
  for (size_t bytes : {size_t{1}, size_t{100}, size_t{512}, size_t{513}, size_t{1048577}, size_t{3145728}, size_t{5242880}}) {
    CUdeviceptr p = must_alloc(bytes);
    range_of("cuMemAlloc", bytes, p, true);
    MUST(cuMemFree_v2(p));
    MUST(cuMemAllocAsync(&p, bytes, nullptr));
    MUST(cuCtxSynchronize());
    range_of("async", bytes, p, false);
    MUST(cuMemFree_v2(p));
  }
  CUdeviceptr p = must_alloc(100);
  CUdeviceptr base = 0;
  size_t size = 0;
  line("range NULL base", cuMemGetAddressRange_v2(nullptr, &size, p));
  line("range NULL size", cuMemGetAddressRange_v2(&base, nullptr, p));
  line("range of garbage", cuMemGetAddressRange_v2(&base, &size, 0xdead000));
  MUST(cuMemFree_v2(p));
}

void attribute(const char* what, CUdeviceptr p, int which) {
  unsigned value = 0;
  CUresult r = cuPointerGetAttribute(&value, static_cast<CUpointer_attribute>(which), p);
  std::printf("%s attribute %d: r %d value %u\n", what, which, r, value);
}

void sharing_and_attributes() {
  CUdeviceptr p = must_alloc(2 << 20);
  CUdeviceptr q = 0;
  MUST(cuMemAllocAsync(&q, 2 << 20, nullptr));
  MUST(cuCtxSynchronize());
  CUipcMemHandle first;
  CUipcMemHandle second;
  line("ipc of cuMemAlloc", cuIpcGetMemHandle(&first, p));
  line("ipc of base+256", cuIpcGetMemHandle(&second, p + 256));
  line(" same handle", std::memcmp(&first, &second, sizeof first) == 0);
  line("ipc of pool ptr", cuIpcGetMemHandle(&first, q));
  for (int which : {2, 10, 13, 15, 16}) {
    attribute("pool ptr", q, which);
  }
  CUmemoryPool pool = nullptr;
  line("pool ptr MEMPOOL_HANDLE r", cuPointerGetAttribute(&pool, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, q));
  line(" nonnull", pool != nullptr);
  for (int which : {2, 10, 13, 15, 16}) {
    attribute("cuMemAlloc ptr", p, which);
  }
  MUST(cuMemFree_v2(p));
  MUST(cuMemFree_v2(q));
  size_t free = 0;
  size_t total = 0;
  line("getinfo NULL,NULL", cuMemGetInfo_v2(nullptr, nullptr));
  line("getinfo f,NULL", cuMemGetInfo_v2(&free, nullptr));
  line("getinfo NULL,t", cuMemGetInfo_v2(nullptr, &total));
}

void proc_addresses() {
  void* fn = &fn;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  line("gpa unknown", cuGetProcAddress_v2("cuNoSuchThing", &fn, 13000, 0, &status));
  line(" null", fn == nullptr);
  line(" status", status);
  line("gpa empty v0", cuGetProcAddress_v2("", &fn, 0, 0, nullptr));
  line(" null", fn == nullptr);
  line("gpa cuMemAlloc 2000", cuGetProcAddress_v2("cuMemAlloc", &fn, 2000, 0, &status));
  line(" null", fn == nullptr);
  line(" is v2", fn == reinterpret_cast<void*>(&cuMemAlloc_v2));
  line("gpa cuMemAlloc 99999", cuGetProcAddress_v2("cuMemAlloc", &fn, 99999, 0, &status));
  line("gpa cuMemAllocAsync 11010", cuGetProcAddress_v2("cuMemAllocAsync", &fn, 11010, 0, &status));
  line(" status", status);
}

void reset() {
  CUdeviceptr p = must_alloc(1 << 20);
  CUdeviceptr q = 0;
  MUST(cuMemAllocAsync(&q, 1 << 20, nullptr));
  MUST(cuCtxSynchronize());
  line("primary reset", cuDevicePrimaryCtxReset_v2(0));
  line("free after reset", cuMemFree_v2(p));
  line("freeAsync after reset", cuMemFreeAsync(p, nullptr));
  CUcontext context = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  line("free old after re-retain", cuMemFree_v2(p));
  line("pool ptr survives: free", cuMemFree_v2(q));
  line("alloc after reset", cuMemAlloc_v2(&p, 1 << 20));
  MUST(cuMemFree_v2(p));
}

void child() {
  std::fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    CUdeviceptr p = 0;
    size_t free = 0;
    line("child alloc", cuMemAlloc_v2(&p, 16));
    line("child getinfo", cuMemGetInfo_v2(&free, nullptr));
    line("child init", cuInit(0));
    std::fflush(stdout);
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
}

// What the order of uses across streams is built on: `held` stands still until the word is 1.
void order_of_streams() {
  CUstream held = nullptr;
  CUstream other = nullptr;
  CUstream third = nullptr;
  CUevent event = nullptr;
  size_t pitch = 0;
  CUdeviceptr word = 0;  // pitched: a word in memory from a pool cannot be waited for
  MUST(cuMemAllocPitch_v2(&word, &pitch, 4, 1, 4));
  unsigned closed = 0;
  unsigned open = 1;
  for (CUstream* each : {&held, &other, &third}) {
    MUST(cuStreamCreate(each, CU_STREAM_NON_BLOCKING));
  }
  MUST(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
  MUST(cuMemcpyHtoD_v2(word, &closed, sizeof closed));
  CUdeviceptr plain = must_alloc(4);
  CUdeviceptr pooled = 0;
  MUST(cuMemAllocAsync(&pooled, 4, nullptr));
  MUST(cuCtxSynchronize());
  line("wait for a value in plain memory", cuStreamWaitValue32_v2(other, plain, 0, CU_STREAM_WAIT_VALUE_GEQ));
  line("wait for a value in pool memory", cuStreamWaitValue32_v2(other, pooled, 0, CU_STREAM_WAIT_VALUE_GEQ));
  MUST(cuStreamSynchronize(other));
  MUST(cuMemFree_v2(plain));
  MUST(cuMemFree_v2(pooled));
  line("event never recorded", cuEventQuery(event));
  MUST(cuStreamWaitValue32_v2(held, word, 1, CU_STREAM_WAIT_VALUE_GEQ));
  line("query held stream", cuStreamQuery(held));
  line("query idle stream", cuStreamQuery(other));
  MUST(cuEventRecord(event, held));
  line("query event behind it", cuEventQuery(event));
  MUST(cuStreamWaitEvent(other, event, 0));
  line("query its waiter", cuStreamQuery(other));
  MUST(cuEventRecord(event, third));
  MUST(cuStreamSynchronize(third));
  line("query event recorded anew", cuEventQuery(event));
  line("query waiter of the first record", cuStreamQuery(other));

  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  int off = 0;
  cuuint64_t all = UINT64_MAX;
  MUST(cuMemPoolCreate(&pool, &properties));
  MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off));
  MUST(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
  CUdeviceptr a = 0;
  CUdeviceptr b = 0;
  MUST(cuMemAllocFromPoolAsync(&a, 4096, pool, held));
  MUST(cuMemFreeAsync(a, held));
  MUST(cuMemAllocFromPoolAsync(&b, 4096, pool, third));
  line("own pool, free not reached: another stream gets it", a == b);
  MUST(cuMemFreeAsync(b, third));
  MUST(cuMemAllocFromPoolAsync(&b, 4096, pool, held));
  line("own pool, free not reached: its stream gets it", a == b);
  MUST(cuMemFreeAsync(b, held));
  MUST(cuMemcpyHtoDAsync_v2(word, &open, sizeof open, third));
  for (CUstream each : {third, held, other}) {
    MUST(cuStreamSynchronize(each));
  }
  line("query opened stream", cuStreamQuery(held));
  line("pool destroy", cuMemPoolDestroy(pool));
  for (CUstream each : {held, other, third}) {
    MUST(cuStreamDestroy_v2(each));
  }
  MUST(cuEventDestroy_v2(event));
  MUST(cuMemFree_v2(word));
}

void granularity() {
  size_t before = 0;
  size_t after = 0;
  CUdeviceptr keep = must_alloc(1);
  MUST(cuMemGetInfo_v2(&before, nullptr));
  std::vector<CUdeviceptr> many(1000);
  for (CUdeviceptr& each : many) {
    each = must_alloc(1);
  }
  MUST(cuMemGetInfo_v2(&after, nullptr));
  line("1000 x 1B consumes", static_cast<long>(before - after));
  for (CUdeviceptr each : many) {
    MUST(cuMemFree_v2(each));
  }
  MUST(cuMemFree_v2(keep));
}

}  // namespace

int main() {
  CUdeviceptr p = 0;
  CUcontext context = nullptr;
  int version = 0;
  line("init", cuInit(0));
  MUST(cuDriverGetVersion(&version));
  line("driver version", version);
  line("alloc without context", cuMemAlloc_v2(&p, 16));
  line("free garbage without context", cuMemFree_v2(0xdead000));
  line("freeAsync garbage without context", cuMemFreeAsync(0xdead000, nullptr));
  line("free 0 without context", cuMemFree_v2(0));
  size_t some = 0;
  line("getinfo without context", cuMemGetInfo_v2(&some, nullptr));
  line("retain", cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  degenerate_arguments();
  pitched();
  frees();
  free_elsewhere();
  ranges();
  sharing_and_attributes();
  proc_addresses();
  order_of_streams();
  reset();
  child();
  granularity();
  static AtExit at_exit;
  return 0;
}
