// At a limit of 100 MiB on the GPU and on pinned memory: what a refusal leaves behind, calls that the driver refuses for
// other reasons, calls that fail and are made again (by faults of the simulated driver), and graphs one after the other.
#include "programs/program.h"

namespace {

constexpr size_t kMiB = 1 << 20;

void show(const char* what, CUresult r) {
  std::printf("%s: %d\n", what, r);
  std::fflush(stdout);
}

size_t left() {
  size_t free = 0;
  MUST(cuMemGetInfo_v2(&free, nullptr));
  return free / kMiB;
}

struct Graph {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  explicit Graph(size_t bytes) {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    params.bytesize = bytes;
    CUgraphNode made = nullptr;
    CUgraphNode freed = nullptr;
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddMemAllocNode(&made, graph, nullptr, 0, &params));
    MUST(cuGraphAddMemFreeNode(&freed, graph, &made, 1, params.dptr));
    MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  }
  CUresult launch() const {
    CUresult result = cuGraphLaunch(exec, nullptr);
    MUST(cuCtxSynchronize());
    return result;
  }
  void destroy() const {
    MUST(cuGraphExecDestroy(exec));
    MUST(cuGraphDestroy(graph));
  }
};

void outputs() {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUdeviceptr p = 0x77;
  void* h = &p;
  CUmemGenericAllocationHandle handle = 0x77;
  show("managed", cuMemAllocManaged(&p, 200 * kMiB, CU_MEM_ATTACH_GLOBAL));
  std::printf(" ptr zero %d\n", p == 0);
  show("host", cuMemHostAlloc(&h, 200 * kMiB, 0));
  std::printf(" ptr zero %d\n", h == nullptr);
  show("physical", cuMemCreate(&handle, 200 * kMiB, &prop, 0));
  std::printf(" handle untouched %d\n", handle == 0x77);
  show("physical, a bad size", cuMemCreate(&handle, 200 * kMiB + 1000, &prop, 0));
  show("physical, bad flags", cuMemCreate(&handle, 200 * kMiB, &prop, 1));
  show("managed, bad flags", cuMemAllocManaged(&p, 200 * kMiB, 77));
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR wrong{16384, 16384, CU_AD_FORMAT_FLOAT, 3};
  show("array, three channels", cuArrayCreate_v2(&array, &wrong));
  std::printf("left: %zu\n", left());
}

// A release and an unmap, each made until it works.
void again() {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr va = 0;
  MUST(cuMemAddressReserve(&va, 64 * kMiB, 0, 0, 0));
  MUST(cuMemCreate(&handle, 64 * kMiB, &prop, 0));
  int failed = 0;
  while (cuMemRelease(handle) != CUDA_SUCCESS) {
    ++failed;
  }
  std::printf("released; failures seen %d; left: %zu\n", failed > 0, left());
  MUST(cuMemCreate(&handle, 64 * kMiB, &prop, 0));
  MUST(cuMemMap(va, 64 * kMiB, 0, handle, 0));
  MUST(cuMemRelease(handle));
  std::printf("mapped; left: %zu\n", left());
  for (failed = 0; cuMemUnmap(va, 64 * kMiB) != CUDA_SUCCESS;) {
    ++failed;
  }
  std::printf("unmapped; failures seen %d; left: %zu\n", failed > 0, left());
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR description{4096, 4096, CU_AD_FORMAT_FLOAT, 1};
  MUST(cuArrayCreate_v2(&array, &description));
  for (failed = 0; cuArrayDestroy(array) != CUDA_SUCCESS;) {
    ++failed;
  }
  std::printf("destroyed; failures seen %d; left: %zu\n", failed > 0, left());
}

void graphs() {
  Graph a(40 * kMiB);
  Graph b(40 * kMiB);
  show("graph a", a.launch());
  show("graph a again", a.launch());
  show("graph b, a may run beside it", b.launch());
  a.destroy();
  show("graph b, a is gone", b.launch());
  MUST(cuDeviceGraphMemTrim(0));
  CUdeviceptr p = must_alloc(60 * kMiB);
  show("graph b, trimmed, beside 60 MiB", b.launch());
  MUST(cuMemFree_v2(p));
  show("graph b", b.launch());
  b.destroy();
  std::printf("left: %zu\n", left());
  MUST(cuDeviceGraphMemTrim(0));
  std::printf("left: %zu\n", left());
}

}  // namespace

int main() {
  start();
  outputs();
  again();
  graphs();
  return 0;
}
