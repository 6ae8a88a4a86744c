// Requests of every kind that fit only when all that the program has freed is free: alone, and beside a capture that allows them.
// With 2 GiB of memory.
#include <initializer_list>

#include "programs/program.h"

namespace {

constexpr size_t kFreed = size_t{1} << 30;
constexpr size_t kWanted = size_t{3} << 29;
CUstream beside = nullptr;

void free_much(size_t parts) {
  CUdeviceptr all[16] = {};
  for (size_t i = 0; i < parts; ++i) {
    all[i] = must_alloc(kFreed / parts);
  }
  for (size_t i = 0; i < parts; ++i) {
    MUST(cuMemFree_v2(all[i]));
  }
}

CUmemoryPool make_pool() {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemoryPool pool = nullptr;
  MUST(cuMemPoolCreate(&pool, &properties));
  return pool;
}

void plain() {
  CUdeviceptr p = 0;
  CUresult r = cuMemAlloc_v2(&p, kWanted);
  std::printf(" plain %d", r);
  if (r == CUDA_SUCCESS) {
    MUST(cuMemFree_v2(p));
  }
}

void from_pool() {
  CUmemoryPool pool = make_pool();
  CUdeviceptr p = 0;
  CUresult r = cuMemAllocFromPoolAsync(&p, kWanted, pool, beside);
  std::printf(" pool %d", r);
  if (r == CUDA_SUCCESS) {
    MUST(cuMemFreeAsync(p, beside));
    MUST(cuStreamSynchronize(beside));
  }
  MUST(cuMemPoolDestroy(pool));
}

void in_default_stream() {
  CUdeviceptr p = 0;
  CUresult r = cuMemAllocAsync(&p, kWanted, CU_STREAM_PER_THREAD);
  std::printf(" per thread %d", r);
  if (r == CUDA_SUCCESS) {
    MUST(cuMemFreeAsync(p, CU_STREAM_PER_THREAD));
    MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  }
}

void physical() {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemGenericAllocationHandle handle = 0;
  CUresult r = cuMemCreate(&handle, kWanted, &properties, 0);
  std::printf(" physical %d", r);
  if (r == CUDA_SUCCESS) {
    MUST(cuMemRelease(handle));
  }
}

void array() {
  CUDA_ARRAY3D_DESCRIPTOR d{};
  d.Width = 1 << 10;
  d.Height = 1 << 10;
  d.Depth = kWanted >> 22;
  d.Format = CU_AD_FORMAT_FLOAT;
  d.NumChannels = 1;
  CUarray made = nullptr;
  CUresult r = cuArray3DCreate_v2(&made, &d);
  std::printf(" array %d", r);
  if (r == CUDA_SUCCESS) {
    MUST(cuArrayDestroy(made));
  }
}

void managed() {
  CUdeviceptr p = 0;
  CUresult r = cuMemAllocManaged(&p, kWanted, CU_MEM_ATTACH_GLOBAL);
  std::printf(" managed %d", r);
  if (r == CUDA_SUCCESS) {
    MUST(cuMemFree_v2(p));
  }
}

void each_kind(const char* what, size_t parts) {
  std::printf("%s:", what);
  for (void (*request)() : {plain, from_pool, in_default_stream, physical, array, managed}) {
    free_much(parts);
    request();
  }
  std::printf("\n");
}

// What is freed before the capture is what is needed in it.
void each_kind_beside_a_capture() {
  std::printf("beside a capture:");
  for (void (*request)() : {plain, from_pool, in_default_stream, physical, array, managed}) {
    free_much(2);
    CUstream capturing = nullptr;
    MUST(cuStreamCreate(&capturing, CU_STREAM_NON_BLOCKING));
    MUST(cuStreamBeginCapture_v2(capturing, CU_STREAM_CAPTURE_MODE_RELAXED));
    request();
    CUgraph graph = nullptr;
    std::printf(" end %d;", cuStreamEndCapture(capturing, &graph));
    MUST(cuStreamDestroy_v2(capturing));
  }
  std::printf("\n");
}

void graph_that_allocates() {
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CUdeviceptr p = 0;
  MUST(cuStreamBeginCapture_v2(beside, CU_STREAM_CAPTURE_MODE_GLOBAL));
  MUST(cuMemAllocAsync(&p, kWanted, beside));
  MUST(cuMemFreeAsync(p, beside));
  MUST(cuStreamEndCapture(beside, &graph));
  MUST(cuGraphInstantiateWithFlags(&exec, graph, 0));
  free_much(2);
  std::printf("graph %d", cuGraphLaunch(exec, beside));
  std::printf(", work %d\n", cuStreamSynchronize(beside));
}

}  // namespace

int main() {
  start();
  MUST(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
  each_kind("one block", 1);
  each_kind("many blocks", 16);
  each_kind_beside_a_capture();
  graph_that_allocates();
  return 0;
}
