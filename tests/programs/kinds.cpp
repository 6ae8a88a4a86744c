// Under a limit of 64 MiB on each GPU and on pinned host memory: an attempt of 100 MiB by each way to make memory, a
// thousand rounds of making and freeing, and what is left of the limit after it. `kinds taken` instead compares what
// cuMemGetInfo says of the limit with what the driver took, for a block of each kind.
#include <functional>

#include "programs/program.h"

namespace {

constexpr size_t kMiB = 1 << 20;

struct Way {
  const char* name;
  std::function<CUresult(size_t bytes)> make;
  std::function<void()> end;
  bool on_host = false;
};

CUdeviceptr ptr;
CUstream stream;
CUmemoryPool pool;
CUmemGenericAllocationHandle handle;
CUdeviceptr reserved;
CUarray array_handle;
CUmipmappedArray mipmap;
CUgraph graph;
CUgraphExec exec;
void* pinned;
void* own;

CUDA_ARRAY3D_DESCRIPTOR floats(size_t bytes, size_t depth) {
  constexpr size_t kWidth = 1024;
  size_t rows = bytes / (kWidth * sizeof(float)) / (depth == 0 ? 1 : depth);
  return {kWidth, rows, depth, CU_AD_FORMAT_FLOAT, 1, 0};
}

CUmemAllocationProp on_device() {
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  return prop;
}

CUresult launch(bool captured, size_t bytes) {
  if (captured) {
    MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    CUdeviceptr p = 0;
    MUST(cuMemAllocAsync(&p, bytes, stream));
    MUST(cuMemFreeAsync(p, stream));
    MUST(cuStreamEndCapture(stream, &graph));
  } else {
    CUDA_MEM_ALLOC_NODE_PARAMS params{};
    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    params.bytesize = bytes;
    CUgraphNode made = nullptr;
    CUgraphNode freed = nullptr;
    MUST(cuGraphCreate(&graph, 0));
    MUST(cuGraphAddMemAllocNode(&made, graph, nullptr, 0, &params));
    MUST(cuGraphAddMemFreeNode(&freed, graph, &made, 1, params.dptr));
  }
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  CUresult result = cuGraphLaunch(exec, stream);
  MUST(cuStreamSynchronize(stream));
  return result;
}
void end_graph() {
  MUST(cuGraphExecDestroy(exec));
  MUST(cuGraphDestroy(graph));
  MUST(cuDeviceGraphMemTrim(0));
}

void free_ptr() { MUST(cuMemFree_v2(ptr)); }

const Way kWays[] = {
    {"plain", [](size_t n) { return cuMemAlloc_v2(&ptr, n); }, free_ptr},
    {"pitch",
     [](size_t n) {
       size_t pitch = 0;
       return cuMemAllocPitch_v2(&ptr, &pitch, n / 100, 100, 4);
     },
     free_ptr},
    {"async", [](size_t n) { return cuMemAllocAsync(&ptr, n, stream); },
     [] {
       MUST(cuMemFreeAsync(ptr, stream));
       MUST(cuStreamSynchronize(stream));
     }},
    {"pool", [](size_t n) { return cuMemAllocFromPoolAsync(&ptr, n, pool, stream); },
     [] {
       MUST(cuMemFreeAsync(ptr, stream));
       MUST(cuStreamSynchronize(stream));
     }},
    {"managed", [](size_t n) { return cuMemAllocManaged(&ptr, n, CU_MEM_ATTACH_GLOBAL); }, free_ptr},
    {"physical",
     [](size_t n) {
       CUmemAllocationProp prop = on_device();
       return cuMemCreate(&handle, n, &prop, 0);
     },
     [] { MUST(cuMemRelease(handle)); }},
    {"physical, mapped",
     [](size_t n) {
       CUmemAllocationProp prop = on_device();
       CUresult result = cuMemCreate(&handle, n, &prop, 0);
       if (result == CUDA_SUCCESS) {
         MUST(cuMemMap(reserved, n, 0, handle, 0));
         MUST(cuMemRelease(handle));
       }
       return result;
     },
     [] { MUST(cuMemUnmap(reserved, 128 * kMiB)); }},
    {"2D array",
     [](size_t n) {
       CUDA_ARRAY3D_DESCRIPTOR d = floats(n, 0);
       CUDA_ARRAY_DESCRIPTOR flat{d.Width, d.Height, d.Format, d.NumChannels};
       return cuArrayCreate_v2(&array_handle, &flat);
     },
     [] { MUST(cuArrayDestroy(array_handle)); }},
    {"3D array",
     [](size_t n) {
       CUDA_ARRAY3D_DESCRIPTOR d = floats(n, 16);
       return cuArray3DCreate_v2(&array_handle, &d);
     },
     [] { MUST(cuArrayDestroy(array_handle)); }},
    {"mipmap",
     [](size_t n) {
       CUDA_ARRAY3D_DESCRIPTOR d = floats(n, 0);
       return cuMipmappedArrayCreate(&mipmap, &d, 3);
     },
     [] { MUST(cuMipmappedArrayDestroy(mipmap)); }},
    {"graph", [](size_t n) { return launch(false, n); }, end_graph},
    {"captured graph", [](size_t n) { return launch(true, n); }, end_graph},
    {"host", [](size_t n) { return cuMemHostAlloc(&pinned, n, 0); }, [] { MUST(cuMemFreeHost(pinned)); }, true},
    {"host, other call", [](size_t n) { return cuMemAllocHost_v2(&pinned, n); }, [] { MUST(cuMemFreeHost(pinned)); }, true},
    {"registered", [](size_t n) { return cuMemHostRegister_v2(own, n, 0); }, [] { MUST(cuMemHostUnregister(own)); }, true},
};

// What the limit leaves, by asking: the most that a plain block, or a pinned one, may have.
size_t left(bool on_host) {
  size_t low = 0;
  size_t high = 128 * kMiB;
  while (low + 512 < high) {
    size_t middle = (low + high) / 2 / 512 * 512;
    CUdeviceptr p = 0;
    void* h = nullptr;
    CUresult result = on_host ? cuMemHostAlloc(&h, middle, 0) : cuMemAlloc_v2(&p, middle);
    if (result == CUDA_SUCCESS) {
      low = middle;
      MUST(on_host ? cuMemFreeHost(h) : cuMemFree_v2(p));
    } else {
      high = middle;
    }
  }
  return high;
}

bool is_graph(const Way& way) { return std::strstr(way.name, "graph") != nullptr; }

void limits(int rounds) {
  size_t device_start = left(false);
  size_t host_start = left(true);
  for (const Way& way : kWays) {
    ptr = 0;
    CUresult refused = way.make(100 * kMiB);
    if (refused == CUDA_SUCCESS || is_graph(way)) {
      way.end();
    }
    int failed = 0;
    for (int i = 0; i < rounds; ++i) {
      if (way.make(16 * kMiB) == CUDA_SUCCESS) {
        way.end();
      } else {
        ++failed;
      }
    }
    long lost = static_cast<long>(way.on_host ? host_start - left(true) : device_start - left(false));
    std::printf("%s: 100 MiB: %d; of %d rounds failed: %d; lost of the limit: %ld\n", way.name, refused, rounds, failed, lost);
    std::fflush(stdout);
  }
}

// What cuMemGetInfo says that a block takes: natively what the driver took, under a limit what was counted.
void taken() {
  for (const Way& way : kWays) {
    for (size_t bytes : {kMiB / 2, 3 * kMiB, 16 * kMiB, 100 * kMiB}) {
      if (way.on_host || (bytes != 16 * kMiB && std::strstr(way.name, "mapped") != nullptr) ||
          (bytes < kMiB && std::strstr(way.name, "physical") != nullptr)) {
        continue;
      }
      bytes = std::strstr(way.name, "physical") != nullptr ? bytes / (2 * kMiB) * (2 * kMiB) : bytes;
      size_t before = 0;
      size_t after = 0;
      MUST(cuMemGetInfo_v2(&before, nullptr));
      MUST(way.make(bytes));
      if (std::strcmp(way.name, "managed") == 0) {
        MUST(cuMemPrefetchAsync_v2(ptr, bytes, {CU_MEM_LOCATION_TYPE_DEVICE, 0}, 0, nullptr));
        MUST(cuCtxSynchronize());
      }
      MUST(cuMemGetInfo_v2(&after, nullptr));
      std::printf("%s\t%zu\t%ld\n", way.name, bytes, static_cast<long>(before - after));
      way.end();
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  start();
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  MUST(cuMemPoolCreate(&pool, &properties));
  MUST(cuMemAddressReserve(&reserved, 128 * kMiB, 0, 0, 0));
  own = std::aligned_alloc(4096, 100 * kMiB);
  if (argc > 1 && std::strcmp(argv[1], "taken") == 0) {
    taken();
  } else {
    limits(argc > 1 ? std::atoi(argv[1]) : 1000);
  }
  return 0;
}
