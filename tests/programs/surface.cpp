// Prints the driver's answers about memory that is not made by cuMemAlloc: physical memory, managed memory, arrays, graphs,
// pinned and imported memory. The same lines must come from a real GPU and from the simulated driver, with the library
// preloaded and without. `used` is the change in cuMemGetInfo, in MiB.
#include <unistd.h>

#include <thread>
#include <vector>

#include "programs/program.h"

namespace {

constexpr size_t kMiB = 1 << 20;
constexpr size_t kGranule = 2 * kMiB;

void line(const char* what, long value) {
  std::printf("%s: %ld\n", what, value);
  std::fflush(stdout);
}

size_t free_bytes() {
  size_t free = 0;
  MUST(cuMemGetInfo_v2(&free, nullptr));
  return free;
}

template <class Call>
void with_use(const char* what, Call call) {
  size_t before = free_bytes();
  CUresult result = call();
  long used = static_cast<long>(before) - static_cast<long>(free_bytes());
  std::printf("%s: %d, used %+ld\n", what, result, used / static_cast<long>(kMiB));
  std::fflush(stdout);
}

CUmemAllocationProp on_device(int device) {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
  return prop;
}

void physical() {
  CUmemAllocationProp prop = on_device(0);
  CUmemAllocationProp nowhere = on_device(77);
  CUmemGenericAllocationHandle h = 0xabc;
  CUmemGenericAllocationHandle other = 0;
  line("create 1000", cuMemCreate(&h, 1000, &prop, 0));
  line("create 0", cuMemCreate(&h, 0, &prop, 0));
  line("create 1<<50", cuMemCreate(&h, size_t{1} << 50, &prop, 0));
  line("create on device 77", cuMemCreate(&h, kGranule, &nowhere, 0));
  line("create flags 1", cuMemCreate(&h, kGranule, &prop, 1));
  line("create NULL", cuMemCreate(nullptr, kGranule, &prop, 0));
  line(" handle written", h != 0xabc);
  with_use("create 64 MiB", [&] { return cuMemCreate(&h, 64 * kMiB, &prop, 0); });
  CUdeviceptr va = 0;
  with_use("reserve", [&] { return cuMemAddressReserve(&va, 256 * kMiB, 0, 0, 0); });
  line("map a part", cuMemMap(va, 32 * kMiB, 0, h, 0));
  with_use("map", [&] { return cuMemMap(va, 64 * kMiB, 0, h, 0); });
  line("map over it", cuMemMap(va, 64 * kMiB, 0, h, 0));
  line("map elsewhere too", cuMemMap(va + 128 * kMiB, 64 * kMiB, 0, h, 0));
  line("retain", cuMemRetainAllocationHandle(&other, reinterpret_cast<void*>(va + 4096)));
  line(" same handle", h == other);
  with_use("release", [&] { return cuMemRelease(h); });
  with_use("release again", [&] { return cuMemRelease(h); });
  line("retain when released", cuMemRetainAllocationHandle(&other, reinterpret_cast<void*>(va)));
  line(" same handle", h == other);
  line("release", cuMemRelease(other));
  line("unmap a half", cuMemUnmap(va, 32 * kMiB));
  with_use("unmap", [&] { return cuMemUnmap(va, 64 * kMiB); });
  line("free addresses that are mapped", cuMemAddressFree(va, 256 * kMiB));
  with_use("unmap the other", [&] { return cuMemUnmap(va + 128 * kMiB, 64 * kMiB); });
  line("unmap again", cuMemUnmap(va, 64 * kMiB));
  line("retain what is unmapped", cuMemRetainAllocationHandle(&other, reinterpret_cast<void*>(va)));
  for (size_t i = 0; i < 2; ++i) {
    MUST(cuMemCreate(&h, kGranule, &prop, 0));
    MUST(cuMemMap(va + i * kGranule, kGranule, 0, h, 0));
    MUST(cuMemRelease(h));
  }
  with_use("unmap two at once", [&] { return cuMemUnmap(va, 2 * kGranule); });
  for (size_t i : {size_t{0}, size_t{2}, size_t{3}}) {
    MUST(cuMemCreate(&h, kGranule, &prop, 0));
    MUST(cuMemMap(va + i * kGranule, kGranule, 0, h, 0));
    MUST(cuMemRelease(h));
  }
  with_use("unmap three with a hole", [&] { return cuMemUnmap(va, 4 * kGranule); });
  line("free addresses", cuMemAddressFree(va, 256 * kMiB));
  prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  int fd = -1;
  with_use("create for others", [&] { return cuMemCreate(&h, kGranule, &prop, 0); });
  line("export", cuMemExportToShareableHandle(&fd, h, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
  void* os_handle = reinterpret_cast<void*>(static_cast<intptr_t>(fd));
  with_use("import", [&] { return cuMemImportFromShareableHandle(&other, os_handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR); });
  line(" same handle", h == other);
  with_use("release the import", [&] { return cuMemRelease(other); });
  line("release", cuMemRelease(h));
  close(fd);
  CUmemAllocationProp on_host = on_device(0);
  on_host.location = {CU_MEM_LOCATION_TYPE_HOST_NUMA, 0};
  with_use("create on the host", [&] { return cuMemCreate(&h, kGranule, &on_host, 0); });
  line("release", cuMemRelease(h));
  prop = on_device(0);
  std::thread([&] {
    line("create without context", cuMemCreate(&other, kGranule, &prop, 0));
    line("release without context", cuMemRelease(other));
  }).join();
}

void managed() {
  CUdeviceptr p = 0xdead0000;
  line("managed 0", cuMemAllocManaged(&p, 0, CU_MEM_ATTACH_GLOBAL));
  line("managed flags 0", cuMemAllocManaged(&p, 100, 0));
  line("managed NULL", cuMemAllocManaged(nullptr, 100, CU_MEM_ATTACH_GLOBAL));
  line("managed 1<<50", cuMemAllocManaged(&p, size_t{1} << 50, CU_MEM_ATTACH_GLOBAL));
  line(" ptr written", p != 0xdead0000);
  with_use("managed 64 MiB", [&] { return cuMemAllocManaged(&p, 64 * kMiB, CU_MEM_ATTACH_GLOBAL); });
  line("freeAsync of managed", cuMemFreeAsync(p, nullptr));
  line("free", cuMemFree_v2(p));
  std::thread([&] { line("managed without context", cuMemAllocManaged(&p, 100, CU_MEM_ATTACH_GLOBAL)); }).join();
}

// What sixteen take, in steps of 64 KiB, and what one like it, that is given memory later, says it needs.
void array(const char* what, const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned levels) {
  constexpr long kStep = 64 << 10;
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  CUDA_ARRAY3D_DESCRIPTOR later = d;
  later.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
  CUarray array = nullptr;
  CUmipmappedArray mipmap = nullptr;
  CUresult asked = CUDA_SUCCESS;
  if (levels == 0) {
    asked = cuArray3DCreate_v2(&array, &later);
    if (asked == CUDA_SUCCESS) {
      asked = cuArrayGetMemoryRequirements(&needs, array, 0);
      MUST(cuArrayDestroy(array));
    }
  } else {
    asked = cuMipmappedArrayCreate(&mipmap, &later, levels);
    if (asked == CUDA_SUCCESS) {
      asked = cuMipmappedArrayGetMemoryRequirements(&needs, mipmap, 0);
      MUST(cuMipmappedArrayDestroy(mipmap));
    }
  }
  std::vector<CUarray> arrays;
  std::vector<CUmipmappedArray> mipmaps;
  size_t before = free_bytes();
  CUresult made = CUDA_SUCCESS;
  for (int i = 0; i < 16 && made == CUDA_SUCCESS; ++i) {
    made = levels == 0 ? cuArray3DCreate_v2(&array, &d) : cuMipmappedArrayCreate(&mipmap, &d, levels);
    if (made == CUDA_SUCCESS) {
      levels == 0 ? arrays.push_back(array) : mipmaps.push_back(mipmap);
    }
  }
  long used = static_cast<long>(before - free_bytes());
  std::printf("%s: needs %d, %ld steps; made %d, sixteen take %ld MiB\n", what, asked, static_cast<long>(needs.size) / kStep, made,
              used / static_cast<long>(kMiB));
  for (CUarray each : arrays) {
    MUST(cuArrayDestroy(each));
  }
  for (CUmipmappedArray each : mipmaps) {
    MUST(cuMipmappedArrayDestroy(each));
  }
}

void arrays() {
  CUarray keep = nullptr;  // chunks of small ones stay
  CUDA_ARRAY_DESCRIPTOR small{1, 1, CU_AD_FORMAT_UNSIGNED_INT8, 1};
  MUST(cuArrayCreate_v2(&keep, &small));
  array("2D 512 x 512 float", {512, 512, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 0);
  array("2D 513 x 513 float", {513, 513, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 0);
  array("2D 1000 x 1000 float4", {1000, 1000, 0, CU_AD_FORMAT_FLOAT, 4, 0}, 0);
  array("3D 100 x 100 x 100 float", {100, 100, 100, CU_AD_FORMAT_FLOAT, 1, 0}, 0);
  array("mipmap 1024 x 1024 byte4, 11 levels", {1024, 1024, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4, 0}, 11);
  array("sparse", {4096, 4096, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE}, 0);
  array("no width", {0, 0, 0, CU_AD_FORMAT_FLOAT, 1, 0}, 0);
  array("3 channels", {100, 100, 0, CU_AD_FORMAT_FLOAT, 3, 0}, 0);
  CUarray a = nullptr;
  CUDA_ARRAY3D_DESCRIPTOR big{16384, 16384, 16384, CU_AD_FORMAT_FLOAT, 4, 0};
  line("16384^3 float4", cuArray3DCreate_v2(&a, &big));
  line(" handle written", a != nullptr);
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  line("requirements of one with memory", cuArrayGetMemoryRequirements(&needs, keep, 0));
  line("destroy NULL", cuArrayDestroy(nullptr));
  std::thread([&] {
    line("array without context", cuArrayCreate_v2(&a, &small));
    line("destroy without context", cuArrayDestroy(keep));
  }).join();
}

long graph_attribute(CUgraphMem_attribute which) {
  cuuint64_t value = 0;
  MUST(cuDeviceGetGraphMemAttribute(0, which, &value));
  return static_cast<long>(value / kMiB);
}

void graphs() {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNode freed = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS params{};
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  params.bytesize = size_t{1} << 50;
  MUST(cuGraphCreate(&graph, 0));
  line("node 1<<50", cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  params.bytesize = 0;
  line("node 0", cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  params.bytesize = 40 * kMiB;
  MUST(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  MUST(cuGraphAddMemFreeNode(&freed, graph, &node, 1, params.dptr));
  with_use("instantiate", [&] { return cuGraphInstantiateWithFlags(&exec, graph, 0); });
  CUgraphExec second = nullptr;
  line("instantiate again", cuGraphInstantiateWithFlags(&second, graph, 0));
  auto launch = [&] {
    CUresult result = cuGraphLaunch(exec, nullptr);
    MUST(cuCtxSynchronize());
    return result;
  };
  with_use("launch", launch);
  line(" reserved", graph_attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT));
  with_use("launch again", launch);
  with_use("trim", [] { return cuDeviceGraphMemTrim(0); });
  with_use("launch after it", launch);
  with_use("destroy", [&] { return cuGraphExecDestroy(exec); });
  MUST(cuGraphDestroy(graph));
  line(" reserved", graph_attribute(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT));
  with_use("trim", [] { return cuDeviceGraphMemTrim(0); });

  MUST(cuGraphCreate(&graph, 0));
  MUST(cuGraphAddMemAllocNode(&node, graph, nullptr, 0, &params));
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  with_use("launch without a free", launch);
  line("and again", cuGraphLaunch(exec, nullptr));
  line("cuMemFreeAsync", cuMemFreeAsync(params.dptr, nullptr));
  with_use("launch", launch);
  line("cuMemFree", cuMemFree_v2(params.dptr));
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
  with_use("trim", [] { return cuDeviceGraphMemTrim(0); });

  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
  CUdeviceptr p = 0;
  CUdeviceptr q = 0;
  line("captured alloc", cuMemAllocAsync(&p, 40 * kMiB, stream));
  line("captured alloc", cuMemAllocAsync(&q, 40 * kMiB, stream));
  line("captured free", cuMemFreeAsync(p, stream));
  line("captured free", cuMemFreeAsync(q, stream));
  MUST(cuStreamEndCapture(stream, &graph));
  size_t nodes = 0;
  MUST(cuGraphGetNodes(graph, nullptr, &nodes));
  line(" nodes", static_cast<long>(nodes));
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  with_use("upload", [&] {
    CUresult result = cuGraphUpload(exec, stream);
    MUST(cuStreamSynchronize(stream));
    return result;
  });
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
  MUST(cuStreamDestroy_v2(stream));
  with_use("trim", [] { return cuDeviceGraphMemTrim(0); });
}

void host() {
  void* h = nullptr;
  with_use("host 64 MiB", [&] { return cuMemHostAlloc(&h, 64 * kMiB, 0); });
  line("free host", cuMemFreeHost(h));
  line("free host again", cuMemFreeHost(h));
  line("free host NULL", cuMemFreeHost(nullptr));
  line("host 0", cuMemHostAlloc(&h, 0, 0));
  line("host 1<<50", cuMemHostAlloc(&h, size_t{1} << 50, 0));
  line("allocHost 1<<50", cuMemAllocHost_v2(&h, size_t{1} << 50));
  auto* own = static_cast<char*>(std::aligned_alloc(4096, 1 << 20));
  line("register", cuMemHostRegister_v2(own, 1 << 20, 0));
  line("register again", cuMemHostRegister_v2(own, 1 << 20, 0));
  line("register a part", cuMemHostRegister_v2(own + 4096, 4096, 0));
  line("unregister a part", cuMemHostUnregister(own + 4096));
  line("unregister", cuMemHostUnregister(own));
  line("unregister again", cuMemHostUnregister(own));
  line("register 0", cuMemHostRegister_v2(own, 0, 0));
  MUST(cuMemAllocHost_v2(&h, 4096));
  line("cuMemFree of host", cuMemFree_v2(reinterpret_cast<CUdeviceptr>(h)));
  std::thread([&] {
    line("free host without context", cuMemFreeHost(h));
    line("host without context", cuMemHostAlloc(&h, 10, 0));
  }).join();
}

// Plain memory, managed memory, arrays and pinned memory end with their context; physical memory does not.
void reset() {
  CUmemAllocationProp prop = on_device(0);
  CUmemGenericAllocationHandle h = 0;
  CUdeviceptr p = 0;
  void* pinned = nullptr;
  CUarray array = nullptr;
  CUDA_ARRAY_DESCRIPTOR d{1000, 1000, CU_AD_FORMAT_FLOAT, 1};
  MUST(cuMemCreate(&h, 64 * kMiB, &prop, 0));
  MUST(cuMemAllocManaged(&p, kMiB, CU_MEM_ATTACH_GLOBAL));
  MUST(cuMemHostAlloc(&pinned, 4096, 0));
  MUST(cuArrayCreate_v2(&array, &d));
  MUST(cuDevicePrimaryCtxReset_v2(0));
  CUcontext context = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  with_use("release what was created before a reset", [&] { return cuMemRelease(h); });
  line("free managed", cuMemFree_v2(p));
  line("free host", cuMemFreeHost(pinned));
}

}  // namespace

int main() {
  start();
  physical();
  managed();
  arrays();
  graphs();
  host();
  reset();
  return 0;
}
