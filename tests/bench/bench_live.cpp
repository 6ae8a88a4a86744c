// bench_live EVENTS LIVE [host]: about EVENTS allocations and frees by four threads that keep LIVE blocks in all, of random sizes,
// from 64 call sites 24 frames deep: what an analysis has to hold. With `host`, of malloc's memory: the same for heaptrack.
#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace {

constexpr size_t kSites = 64;

CUdeviceptr of_device(size_t bytes) {
  CUdeviceptr ptr = 0;
  cuMemAlloc_v2(&ptr, bytes);
  return ptr;
}
void to_device(CUdeviceptr ptr) { cuMemFree_v2(ptr); }
CUdeviceptr of_host(size_t bytes) { return reinterpret_cast<CUdeviceptr>(std::malloc(bytes)); }
void to_host(CUdeviceptr ptr) { std::free(reinterpret_cast<void*>(ptr)); }

struct Memory {
  CUdeviceptr (*allocate)(size_t) = of_device;
  void (*free)(CUdeviceptr) = to_device;
};

template <size_t kSite>
__attribute__((noinline)) CUdeviceptr allocate(const Memory& memory, int depth, size_t bytes) {
  CUdeviceptr ptr = depth > 0 ? allocate<kSite>(memory, depth - 1, bytes) : memory.allocate(bytes);
  __asm__ volatile("" ::: "memory");  // no tail call
  return ptr;
}

using Site = CUdeviceptr (*)(const Memory&, int, size_t);
template <size_t... kSite>
constexpr std::array<Site, sizeof...(kSite)> sites(std::index_sequence<kSite...>) {
  return {allocate<kSite>...};
}
constexpr auto kAll = sites(std::make_index_sequence<kSites>());

void work(CUcontext context, Memory memory, unsigned seed, long pairs, size_t live) {
  constexpr int kDepth = 24;
  constexpr size_t kMostBytes = 512;  // the driver that does nothing gives addresses so far apart
  if (context != nullptr) {
    cuCtxSetCurrent(context);
  }
  std::minstd_rand random(seed);
  std::vector<CUdeviceptr> blocks(live);
  for (long i = 0; i < pairs; ++i) {
    CUdeviceptr& block = blocks[random() % live];
    if (block != 0) {
      memory.free(block);
    }
    block = kAll[random() % kSites](memory, kDepth, 1 + random() % kMostBytes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kThreads = 4;
  long events = argc > 1 ? std::atol(argv[1]) : 1'000'000;
  size_t live = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 100'000;
  bool host = argc > 3 && std::strcmp(argv[3], "host") == 0;
  Memory memory = host ? Memory{of_host, to_host} : Memory{};
  CUcontext context = nullptr;
  if (!host && (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS)) {
    return 1;
  }
  std::vector<std::thread> all;
  for (int i = 0; i < kThreads; ++i) {
    all.emplace_back(work, context, memory, static_cast<unsigned>(i + 1), events / 2 / kThreads, live / kThreads);
  }
  for (auto& each : all) {
    each.join();
  }
  return 0;
}
