// A program that frees and allocates in stream order at its limit of 1 GiB, on streams that are held back.
#include <unistd.h>
#include <thread>

#include "programs/program.h"

namespace {
constexpr size_t kMiB = 1 << 20;
void show(const char* what, CUresult r) { std::printf("%s: %d\n", what, r); }
}  // namespace

int main() {
  CUcontext context = start();
  CUstream held = nullptr;
  CUstream other = nullptr;
  MUST(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  CUdeviceptr flag = must_alloc(4);
  MUST(cuMemsetD8_v2(flag, 0, 4));
  MUST(cuCtxSynchronize());
  CUdeviceptr p = 0;
  MUST(cuMemAllocAsync(&p, 700 * kMiB, held));
  MUST(cuStreamWaitValue32_v2(held, flag, 1, CU_STREAM_WAIT_VALUE_GEQ));
  for (int i = 0; i < 5; ++i) {  // in order, behind the wait: nothing of this is done yet
    MUST(cuMemFreeAsync(p, held));
    show("same stream, behind the wait", cuMemAllocAsync(&p, 700 * kMiB, held));
  }
  MUST(cuMemFreeAsync(p, held));
  CUdeviceptr q = 0;
  show("another stream, the free not done", cuMemAllocAsync(&q, 700 * kMiB, other));
  show("plain, the free not done", cuMemAlloc_v2(&q, 700 * kMiB));
  std::thread opener([&] {
    MUST(cuCtxSetCurrent(context));
    usleep(100'000);
    MUST(cuMemsetD8Async(flag, 1, 4, other));
    MUST(cuStreamSynchronize(other));
  });
  show("another stream, done within the wait", cuMemAllocAsync(&q, 700 * kMiB, other));
  opener.join();
  MUST(cuMemFreeAsync(q, other));
  MUST(cuStreamSynchronize(other));
  show("plain, after a synchronise", cuMemAlloc_v2(&q, 1000 * kMiB));
  MUST(cuMemFree_v2(q));

  // What the pool has reserved counts, whatever streams it was freed in, until a synchronise gives it back.
  for (int i = 0; i < 20; ++i) {
    CUstream passing = nullptr;
    MUST(cuStreamCreate(&passing, CU_STREAM_NON_BLOCKING));
    MUST(cuMemAllocAsync(&p, 900 * kMiB, passing));
    MUST(cuMemFreeAsync(p, passing));
    MUST(cuStreamDestroy_v2(passing));
  }
  MUST(cuCtxSynchronize());
  show("after 20 streams came and went", cuMemAlloc_v2(&q, 1000 * kMiB));
  MUST(cuMemFree_v2(q));

  // The thread's own stream is another one in each thread.
  std::thread([&] {
    MUST(cuCtxSetCurrent(context));
    MUST(cuMemAllocAsync_ptsz(&p, 700 * kMiB, nullptr));
    MUST(cuMemFreeAsync_ptsz(p, nullptr));
    MUST(cuStreamSynchronize(CU_STREAM_PER_THREAD));
  }).join();
  show("on this thread's stream", cuMemAllocAsync_ptsz(&q, 700 * kMiB, nullptr));
  MUST(cuMemFree_v2(q));
  MUST(cuMemFree_v2(flag));
  return 0;
}
