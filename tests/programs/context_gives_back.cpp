// A context ends with its blocks: their memory is the GPU's again.
#include "programs/program.h"

int main() {
  start();
  size_t before = 0;
  size_t after = 0;
  size_t total = 0;
  for (int round = 0; round < 3; ++round) {
    MUST(cuMemGetInfo_v2(&before, &total));
    CUcontext own = nullptr;
    MUST(cuCtxCreate_v2(&own, 0, 0));
    must_alloc(100 << 20);
    MUST(cuCtxDestroy_v2(own));
    MUST(cuMemGetInfo_v2(&after, &total));
    std::printf("lost: %zu MiB\n", (before - after) >> 20);
  }
  return 0;
}
