// Blocks come and go, then one request takes most of the GPU (XLOG_SIM_MEMORY=67108864).
#include "programs/program.h"

int main() {
  start();
  for (int round = 0; round < 3; ++round) {
    CUdeviceptr blocks[20];
    for (CUdeviceptr& each : blocks) {
      each = must_alloc(4096);
    }
    for (CUdeviceptr each : blocks) {
      MUST(cuMemFree_v2(each));
    }
    CUdeviceptr large = 0;
    size_t free = 0;
    size_t total = 0;
    MUST(cuMemGetInfo_v2(&free, &total));
    std::printf("free %zu\n", free);
    CUresult result = cuMemAlloc_v2(&large, 60 << 20);
    std::printf("60 MiB: %d\n", result);
    if (result == CUDA_SUCCESS) {
      MUST(cuMemFree_v2(large));
    }
  }
  return 0;
}
