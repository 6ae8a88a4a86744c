// Contexts that end with live blocks, under a limit of 1 GiB.
#include "programs/program.h"

namespace {
constexpr size_t kMiB = 1 << 20;
void show(const char* what, CUresult r) { std::printf("%s: %d\n", what, r); }
}  // namespace

int main() {
  CUcontext primary = start();
  CUdeviceptr pooled = 0;
  MUST(cuMemAllocAsync(&pooled, 50 * kMiB, nullptr));
  MUST(cuCtxSynchronize());
  CUdeviceptr old = must_alloc(900 * kMiB);
  CUdeviceptr p = 0;
  show("more than fits", cuMemAlloc_v2(&p, 200 * kMiB));
  show("reset", cuDevicePrimaryCtxReset_v2(0));
  MUST(cuDevicePrimaryCtxRetain(&primary, 0));
  MUST(cuCtxSetCurrent(primary));
  show("900 again", cuMemAlloc_v2(&p, 900 * kMiB));
  show("the pool's 50 still count", cuMemAlloc_v2(&old, 100 * kMiB));
  show("free of a pointer that was not given", cuMemFree_v2(0x123456000));
  MUST(cuMemFree_v2(p));
  show("the pool's block", cuMemFree_v2(pooled));

  // Two created contexts: only the destroyed one's blocks go.
  CUcontext a = nullptr;
  CUcontext b = nullptr;
  MUST(cuCtxCreate_v2(&a, 0, 0));
  CUdeviceptr in_a = must_alloc(400 * kMiB);
  MUST(cuCtxCreate_v2(&b, 0, 0));
  CUdeviceptr in_b = must_alloc(400 * kMiB);
  show("400 more", cuMemAlloc_v2(&p, 400 * kMiB));
  show("destroy b", cuCtxDestroy_v2(b));
  MUST(cuCtxSetCurrent(a));
  show("400 more, b gone", cuMemAlloc_v2(&p, 400 * kMiB));
  show("b's old block", in_b != p ? cuMemFree_v2(in_b) : CUDA_ERROR_INVALID_VALUE);
  show("a's block", cuMemFree_v2(in_a));
  MUST(cuMemFree_v2(p));

  // Release: the last one ends the context, those before do not. A reset does not release.
  MUST(cuCtxDestroy_v2(a));
  MUST(cuCtxSetCurrent(primary));
  CUcontext again = nullptr;
  MUST(cuDevicePrimaryCtxRetain(&again, 0));
  p = must_alloc(900 * kMiB);
  show("release one of three", cuDevicePrimaryCtxRelease_v2(0));
  show("release another", cuDevicePrimaryCtxRelease_v2(0));
  show("still full", cuMemAlloc_v2(&old, 200 * kMiB));
  show("release the last", cuDevicePrimaryCtxRelease_v2(0));
  MUST(cuDevicePrimaryCtxRetain(&primary, 0));
  MUST(cuCtxSetCurrent(primary));
  show("900 after the last release", cuMemAlloc_v2(&p, 900 * kMiB));
  MUST(cuMemFree_v2(p));
  return 0;
}
