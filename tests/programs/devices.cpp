// Which device is charged, with two devices and a limit of 1 GiB on each.
#include <thread>

#include "programs/program.h"

namespace {
constexpr size_t kMiB = 1 << 20;
void show(const char* what, CUresult r) { std::printf("%s: %d\n", what, r); }
}  // namespace

int main() {
  MUST(cuInit(0));
  CUdeviceptr p = 0;
  std::thread([&] {
    show("no context, plain", cuMemAlloc_v2(&p, 16));
    show("no context, async", cuMemAllocAsync(&p, 16, nullptr));
    show("no context, free", cuMemFree_v2(0x1000));
  }).join();
  CUcontext zero = nullptr;
  CUcontext one = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&zero, 0));
  MUST(cuDevicePrimaryCtxRetain(&one, 1));
  MUST(cuCtxSetCurrent(one));
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));

  MUST(cuCtxSetCurrent(zero));
  p = must_alloc(900 * kMiB);
  CUdeviceptr q = 0;
  show("on 1's stream, 0 current", cuMemAllocAsync(&q, 900 * kMiB, stream));
  CUdeviceptr r = 0;
  show("200 more on 1's stream", cuMemAllocAsync(&r, 200 * kMiB, stream));
  show("200 more on 0", cuMemAlloc_v2(&r, 200 * kMiB));
  MUST(cuCtxSetCurrent(one));
  show("free 0's with 1 current", cuMemFree_v2(p));
  show("200 more on 1", cuMemAlloc_v2(&r, 200 * kMiB));
  MUST(cuCtxSetCurrent(zero));
  show("900 on 0 again", cuMemAlloc_v2(&p, 900 * kMiB));
  MUST(cuMemFreeAsync(q, stream));
  MUST(cuStreamSynchronize(stream));

  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 1;
  CUmemoryPool pool = nullptr;
  MUST(cuMemPoolCreate(&pool, &properties));
  CUstream own = nullptr;
  MUST(cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
  show("1's pool on 0's stream", cuMemAllocFromPoolAsync(&q, 900 * kMiB, pool, own));
  show("200 more of 1's pool", cuMemAllocFromPoolAsync(&r, 200 * kMiB, pool, own));
  MUST(cuMemFreeAsync(q, own));
  MUST(cuStreamSynchronize(own));
  MUST(cuMemFree_v2(p));

  // Physical memory is its location's, whatever is current, and nobody's on the host; graphs are their nodes'.
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  CUmemGenericAllocationHandle handle = 0;
  CUmemGenericAllocationHandle other = 0;
  std::thread([&] { show("no context, physical on 1", cuMemCreate(&handle, 900 * kMiB, &prop, 0)); }).join();
  show("200 more on 1", cuMemCreate(&other, 200 * kMiB, &prop, 0));
  show("900 on 0", cuMemAlloc_v2(&p, 900 * kMiB));
  MUST(cuMemRelease(handle));
  show("200 more on 1, released", cuMemCreate(&other, 200 * kMiB, &prop, 0));
  MUST(cuMemRelease(other));
  prop.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  show("200 on the host", cuMemCreate(&other, 200 * kMiB, &prop, 0));
  MUST(cuMemRelease(other));
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
  params.bytesize = 800 * kMiB;
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNode freed = nullptr;
  CUgraphExec exec = nullptr;
  MUST(cuGraphCreate(&graph, 0));
  MUST(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  MUST(cuGraphAddMemFreeNode(&freed, graph, &node, 1, params.dptr));
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  show("a graph of 0 allocates on 1", cuGraphLaunch(exec, own));
  MUST(cuStreamSynchronize(own));
  MUST(cuCtxSetCurrent(one));
  show("300 more on 1", cuMemAlloc_v2(&q, 300 * kMiB));
  CUdeviceptr m = 0;
  show("300 managed on 1", cuMemAllocManaged(&m, 300 * kMiB, CU_MEM_ATTACH_GLOBAL));
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR description{4096, 20480, CU_AD_FORMAT_FLOAT, 1};
  show("an array of 320 on 1", cuArrayCreate_v2(&array, &description));
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
  MUST(cuDeviceGraphMemTrim(1));
  show("an array of 320 on 1, trimmed", cuArrayCreate_v2(&array, &description));
  MUST(cuCtxSetCurrent(zero));
  show("destroyed with 0 current", cuArrayDestroy(array));
  show("900 managed on 0", cuMemAllocManaged(&m, 900 * kMiB, CU_MEM_ATTACH_GLOBAL));
  MUST(cuMemFree_v2(p));
  show("900 managed on 0", cuMemAllocManaged(&m, 900 * kMiB, CU_MEM_ATTACH_GLOBAL));
  MUST(cuCtxSetCurrent(one));
  show("freed with 1 current", cuMemFree_v2(m));
  return 0;
}
