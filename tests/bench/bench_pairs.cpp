// bench_pairs THREADS PAIRS DEPTH: allocate/free pairs under a call stack of DEPTH frames; prints nanoseconds a pair,
// per thread (the wall time of the slowest thread over its pairs).
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

double seconds(int depth, long pairs);

__attribute__((noinline)) double run_pairs(long pairs) {
  auto start = Clock::now();
  for (long i = 0; i < pairs; ++i) {
    CUdeviceptr p = 0;
    cuMemAlloc_v2(&p, 1024);
    cuMemFree_v2(p);
  }
  return std::chrono::duration<double>(Clock::now() - start).count();
}

__attribute__((noinline)) double seconds(int depth, long pairs) {
  double result = depth <= 0 ? run_pairs(pairs) : seconds(depth - 1, pairs);
  __asm__ volatile("" ::: "memory");  // no tail call: the stack is as deep as it says
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  long pairs = argc > 2 ? std::atol(argv[2]) : 1'000'000;
  int depth = argc > 3 ? std::atoi(argv[3]) : 0;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || cuCtxSetCurrent(context) != CUDA_SUCCESS) {
    return 1;
  }
  seconds(depth, 1000);  // warm
  std::vector<std::thread> all;
  auto start = Clock::now();
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([=] {
      cuCtxSetCurrent(context);
      seconds(depth, pairs);
    });
  }
  for (auto& each : all) {
    each.join();
  }
  double wall = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("%.1f\n", wall * 1e9 / (static_cast<double>(pairs) * threads));
  return 0;
}
