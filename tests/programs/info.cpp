// What a program is told of its memory, and what one does with it that takes three quarters and backs off.
#include "programs/program.h"

namespace {
void show(const char* what) {
  size_t free = 1;
  size_t total = 2;
  CUresult r = cuMemGetInfo_v2(&free, &total);
  std::printf("%s: r %d free %zu total %zu\n", what, r, free, total);
}
}  // namespace

int main() {
  start();
  size_t bytes = 0;
  MUST(cuDeviceTotalMem_v2(&bytes, 0));
  std::printf("device total %zu\n", bytes);
  size_t only = 7;
  std::printf("NULLs: %d %d %d\n", cuMemGetInfo_v2(nullptr, nullptr), cuMemGetInfo_v2(&only, nullptr), cuMemGetInfo_v2(nullptr, &only));
  show("empty");
  CUdeviceptr p = 0;
  CUresult r = cuMemAlloc_v2(&p, size_t{100} << 20);
  std::printf("100 MiB: %d\n", r);
  show("with it");
  if (p != 0) {
    MUST(cuMemFree_v2(p));
  }
  MUST(cuMemAllocAsync(&p, 64 << 20, nullptr));
  MUST(cuMemFreeAsync(p, nullptr));
  show("after an ordered free");
  size_t free = 0;
  MUST(cuMemGetInfo_v2(&free, nullptr));
  size_t want = free / 4 * 3;
  int tries = 0;
  while (cuMemAlloc_v2(&p, want) != CUDA_SUCCESS && ++tries < 100) {
    want = want / 10 * 9;
  }
  std::printf("three quarters after %d tries\n", tries);
  return 0;
}
