// At a limit of 1 GiB: a block is freed while its work is still held back, and the next one needs its bytes. On the
// simulated driver only: on a real one it did not end without a backend, where cuMemFree waits in the driver.
#include <unistd.h>

#include <thread>

#include "programs/program.h"

int main() {
  constexpr size_t kMiB = 1 << 20;
  CUcontext context = start();
  CUstream held = nullptr;
  CUstream other = nullptr;
  size_t pitch = 0;
  CUdeviceptr word = 0;
  MUST(cuMemAllocPitch_v2(&word, &pitch, 4, 1, 4));
  MUST(cuStreamCreate(&held, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&other, CU_STREAM_NON_BLOCKING));
  MUST(cuMemsetD8Async(word, 0, 4, other));
  MUST(cuStreamSynchronize(other));
  CUdeviceptr p = must_alloc(700 * kMiB);
  CUdeviceptr q = 0;
  MUST(cuStreamWaitValue32_v2(held, word, 1, CU_STREAM_WAIT_VALUE_GEQ));
  MUST(cuMemsetD8Async(p, 1, kMiB, held));
  std::thread opener([&] {
    MUST(cuCtxSetCurrent(context));
    usleep(100'000);
    MUST(cuMemsetD8Async(word, 1, 4, other));
    MUST(cuStreamSynchronize(other));
  });
  std::printf("free: %d\n", cuMemFree_v2(p));
  std::printf("the same again: %d\n", cuMemAlloc_v2(&q, 700 * kMiB));
  opener.join();
  MUST(cuMemFree_v2(q));
  return 0;
}
