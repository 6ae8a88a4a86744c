// The calls of the first drivers, in a context of the first cuCtxCreate: there is none while another sort is alive.
#include "programs/program.h"

namespace {

constexpr unsigned kMiB = 1 << 20;

void show(const char* what, CUresult r) {
  std::printf("%s: %d\n", what, r);
  std::fflush(stdout);
}

}  // namespace

int main() {
  MUST(cuInit(0));
  CUcontext context = nullptr;
  CUdeviceptr_v1 p = 0;
  CUdeviceptr q = 0;
  show("without a context", cuMemAlloc(&p, 1000));
  show("a context of the first sort", cuCtxCreate(&context, 0, 0));
  unsigned version = 0;
  MUST(cuCtxGetApiVersion(context, &version));
  std::printf("its version: %u\n", version);
  size_t pitch = 0;
  show("the newer call", cuMemAlloc_v2(&q, 1000));
  show("the newer call, pitch", cuMemAllocPitch_v2(&q, &pitch, 1000, 10, 4));
  show("stream-ordered", cuMemAllocAsync(&q, 1000, nullptr));
  std::printf(" an address %d\n", q != 0);
  show("stream-ordered, free", cuMemFreeAsync(q, nullptr));
  CUresult r = cuMemAlloc(&p, kMiB);
  show("1 MiB", r);
  std::printf(" an address %d\n", p != 0);
  show("free", cuMemFree(p));
  show("free again", cuMemFree(p));
  r = cuMemAlloc(&p, 100 * kMiB);
  show("100 MiB", r);
  if (r == CUDA_SUCCESS) {
    MUST(cuMemFree(p));
  }
  CUDA_ARRAY_DESCRIPTOR_v1 description{5120, 5120, CU_AD_FORMAT_FLOAT, 1};
  CUarray array = nullptr;
  r = cuArrayCreate(&array, &description);
  show("array of 100 MiB", r);
  if (r == CUDA_SUCCESS) {
    MUST(cuArrayDestroy(array));
  }
  void* host = nullptr;
  r = cuMemAllocHost(&host, 100 * kMiB);
  show("host 100 MiB", r);
  if (r == CUDA_SUCCESS) {
    MUST(cuMemFreeHost(host));
  }
  unsigned free = 0;
  unsigned total = 0;
  unsigned device = 0;
  MUST(cuMemGetInfo(&free, &total));
  MUST(cuDeviceTotalMem(&device, 0));
  std::printf("total at most 64 MiB: %d, free too: %d, device total: %d\n", total <= 64 * kMiB, free <= 64 * kMiB, device <= 64 * kMiB);
  MUST(cuMemAlloc(&p, kMiB));
  show("destroy", cuCtxDestroy_v2(context));
  MUST(cuDevicePrimaryCtxRetain(&context, 0));
  MUST(cuCtxSetCurrent(context));
  show("in a primary context", cuMemAlloc(&p, 1000));
  CUcontext first = nullptr;
  show("a context of the first sort beside it", cuCtxCreate(&first, 0, 0));
  return 0;
}
