// A loop of kernels of about 20 us beside 100 live blocks: microseconds a launch, the best of five rounds.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define MUST(call)                                                  \
  do {                                                              \
    if ((call) != cudaSuccess) {                                    \
      std::printf("%s:%d: %s failed\n", __FILE__, __LINE__, #call); \
      std::exit(3);                                                 \
    }                                                               \
  } while (0)

// Of the GPU's own clock, so that a tool that slows its instructions down does not make it longer.
__global__ void work(int* data, long long nanoseconds) {
  unsigned long long start = 0;
  unsigned long long now = 0;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(start));
  do {
    data[blockIdx.x * blockDim.x + threadIdx.x] += 1;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  } while (now - start < nanoseconds);
}

int main() {
  constexpr int kLaunches = 2000;
  std::vector<int*> blocks(100);
  for (int*& each : blocks) {
    MUST(cudaMalloc(&each, 128 * 256 * sizeof(int)));
    MUST(cudaMemset(each, 0, 128 * 256 * sizeof(int)));
  }
  double least = 1e9;
  for (int round = 0; round < 6; ++round) {
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) {
      work<<<128, 256>>>(blocks[i % 100], 20'000);
    }
    MUST(cudaDeviceSynchronize());
    double us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / kLaunches;
    least = round > 0 && us < least ? us : least;
  }
  std::printf("%.3f\n", least);
  return 0;
}
