// What the driver counts as used when nothing is live, after blocks of one size and of many; under a limit, what it
// counts at any time. On the simulated driver, which can be asked.
#include <dlfcn.h>

#include <vector>

#include "programs/program.h"

namespace {
constexpr size_t kMiB = 1 << 20;
size_t (*used)(int) = nullptr;
size_t most = 0;

void note() {
  size_t now = used(0);
  most = now > most ? now : most;
}

void come_and_go(size_t count, size_t first, size_t step) {
  std::vector<CUdeviceptr> blocks;
  for (size_t i = 0; i < count; ++i) {
    CUdeviceptr p = 0;
    if (cuMemAlloc_v2(&p, (first + i * step) * kMiB) == CUDA_SUCCESS) {
      blocks.push_back(p);
      note();
    }
  }
  for (CUdeviceptr each : blocks) {
    MUST(cuMemFree_v2(each));
    note();
  }
}
}  // namespace

int main() {
  used = reinterpret_cast<size_t (*)(int)>(dlsym(RTLD_DEFAULT, "xlog_sim_used"));
  start();
  bool limited = std::getenv("XLOG_BUDGET") != nullptr;
  for (size_t step : {0, 2}) {
    come_and_go(20, 12, step);
    come_and_go(20, 11, step);
    if (!limited) {
      std::printf("held at most 96 MiB: %d\n", used(0) <= 96 * kMiB);
    }
  }
  if (limited) {
    std::printf("used at most 300 MiB: %d\n", most <= 300 * kMiB);
  }
  std::fprintf(stderr, "most %zu MiB, at the end %zu MiB\n", most / kMiB, used(0) / kMiB);
  return 0;
}
