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
  return 0;
}
