// bench_live EVENTS LIVE: about EVENTS allocations and frees by four threads that keep LIVE blocks in all, of random sizes, from 64
// call sites 24 frames deep: what an analysis has to hold.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr size_t kSites = 64;

template <size_t kSite>
__attribute__((noinline)) CUdeviceptr allocate(int depth, size_t bytes) {
  CUdeviceptr ptr = 0;
  if (depth > 0) {
    ptr = allocate<kSite>(depth - 1, bytes);
  } else {
    cuMemAlloc_v2(&ptr, bytes);
  }
  __asm__ volatile("" ::: "memory");  // no tail call
  return ptr;
}

using Site = CUdeviceptr (*)(int, size_t);
template <size_t... kSite>
constexpr std::array<Site, sizeof...(kSite)> sites(std::index_sequence<kSite...>) {
  return {allocate<kSite>...};
}
constexpr auto kAll = sites(std::make_index_sequence<kSites>());

void work(CUcontext context, unsigned seed, long pairs, size_t live) {
  constexpr int kDepth = 24;
  constexpr size_t kMostBytes = 512;  // the driver that does nothing gives addresses so far apart
  cuCtxSetCurrent(context);
  std::minstd_rand random(seed);
  std::vector<CUdeviceptr> blocks(live);
  for (long i = 0; i < pairs; ++i) {
    CUdeviceptr& block = blocks[random() % live];
    if (block != 0) {
      cuMemFree_v2(block);
    }
    block = kAll[random() % kSites](kDepth, 1 + random() % kMostBytes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kThreads = 4;
  long events = argc > 1 ? std::atol(argv[1]) : 1'000'000;
  size_t live = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100'000;
  CUcontext context = nullptr;
  if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS) {
    return 1;
  }
  std::vector<std::thread> all;
  for (int i = 0; i < kThreads; ++i) {
    all.emplace_back(work, context, static_cast<unsigned>(i + 1), events / 2 / kThreads, live / kThreads);
  }
  for (auto& each : all) {
    each.join();
  }
  return 0;
}
