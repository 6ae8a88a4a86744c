// Eight threads whose live blocks fit under a limit of 64 MiB, whatever is freed and not done: none is refused.
#include <atomic>
#include <thread>
#include <vector>

#include "programs/program.h"

int main() {
  constexpr size_t kMiB = 1 << 20;
  CUcontext context = start();
  std::atomic<int> refused{0};
  std::vector<std::thread> all;
  for (int t = 0; t < 8; ++t) {
    all.emplace_back([&] {
      MUST(cuCtxSetCurrent(context));
      CUstream stream = nullptr;
      MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
      for (int i = 0; i < 300; ++i) {
        CUdeviceptr p = 0;
        if (cuMemAlloc_v2(&p, 8 * kMiB) != CUDA_SUCCESS) {
          ++refused;
          continue;
        }
        MUST(cuMemsetD8Async(p, 1, 4096, stream));
        MUST(cuMemFree_v2(p));
      }
      MUST(cuStreamDestroy_v2(stream));
    });
  }
  for (auto& each : all) {
    each.join();
  }
  std::printf("refused: %d\n", refused.load());
  return 0;
}
