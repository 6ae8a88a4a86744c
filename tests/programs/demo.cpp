// The sample program of `make demo`: a job that keeps too much. Prints what it did, so that runs can be compared.
#include <vector>

#include "programs/program.h"

namespace {

constexpr size_t kMiB = 1 << 20;

__attribute__((noinline)) std::vector<CUdeviceptr> load_weights() {
  std::vector<CUdeviceptr> weights;
  for (int layer = 0; layer < 12; ++layer) {
    weights.push_back(must_alloc(48 * kMiB));
  }
  return weights;
}

__attribute__((noinline)) void train_step(std::vector<CUdeviceptr>& history) {
  CUdeviceptr activations = must_alloc(96 * kMiB);
  MUST(cuMemsetD8_v2(activations, 1, kMiB));
  history.push_back(must_alloc(16 * kMiB));  // kept for ever
  MUST(cuMemFree_v2(activations));
}

__attribute__((noinline)) long ask_for_too_much() {
  CUdeviceptr p = 0;
  long refused = 0;
  while (cuMemAlloc_v2(&p, 512 * kMiB) == CUDA_SUCCESS) {
    MUST(cuMemFree_v2(p));
    p = must_alloc(64 * kMiB);
    ++refused;
  }
  return refused;
}

}  // namespace

int main() {
  start();
  size_t free = 0;
  size_t total = 0;
  MUST(cuMemGetInfo_v2(&free, &total));
  std::vector<CUdeviceptr> weights = load_weights();
  std::vector<CUdeviceptr> history;
  for (int step = 0; step < 20; ++step) {
    train_step(history);
  }
  for (CUdeviceptr each : weights) {
    MUST(cuMemFree_v2(each));
  }
  std::printf("demo: 12 layers, 20 steps, %zu buffers kept\n", history.size());
  if (total < (size_t{2} << 30)) {  // under a limit: until it is reached
    ask_for_too_much();
  }
  return 0;
}
