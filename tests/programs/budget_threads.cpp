// One process, 16 threads, a limit of 1 GiB: who gets what. Then 1000 refusals of the driver, and a full gigabyte after.
#include <dlfcn.h>

#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "programs/program.h"

namespace {

constexpr size_t kMiB = 1 << 20;
constexpr int kThreads = 16;

template <class Work>
void together(CUcontext context, Work work) {
  std::vector<std::thread> all;
  std::barrier gate(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    all.emplace_back([&, i] {
      MUST(cuCtxSetCurrent(context));
      gate.arrive_and_wait();
      work(i);
    });
  }
  for (auto& each : all) {
    each.join();
  }
}

}  // namespace

int main() {
  CUcontext context = start();
  std::atomic<int> granted{0};
  std::atomic<int> refused{0};
  std::atomic<CUdeviceptr> winner{0};
  together(context, [&](int) {
    CUdeviceptr p = 0xdead;
    CUresult r = cuMemAlloc_v2(&p, 600 * kMiB);
    if (r == CUDA_SUCCESS) {
      ++granted;
      winner = p;
    } else if (r == CUDA_ERROR_OUT_OF_MEMORY && p == 0) {
      ++refused;
    }
  });
  std::printf("600 MiB each: %d granted, %d refused\n", granted.load(), refused.load());
  CUdeviceptr small = 0;
  std::printf("a small one: %d\n", cuMemAlloc_v2(&small, 1024));
  MUST(cuMemFree_v2(small));
  MUST(cuMemFree_v2(winner));

  std::atomic<long> live{0};
  std::atomic<long> most{0};
  together(context, [&](int seed) {
    unsigned state = static_cast<unsigned>(seed) * 2654435761U + 1;
    for (int i = 0; i < 2000; ++i) {
      state = state * 1664525U + 1013904223U;
      size_t bytes = (state >> 8) % (200 * kMiB) + 1;
      CUdeviceptr p = 0;
      if (cuMemAlloc_v2(&p, bytes) == CUDA_SUCCESS) {
        long now = live.fetch_add(static_cast<long>(bytes)) + static_cast<long>(bytes);
        long seen = most.load();
        while (now > seen && !most.compare_exchange_weak(seen, now)) {
        }
        live.fetch_sub(static_cast<long>(bytes));
        MUST(cuMemFree_v2(p));
      }
    }
  });
  std::printf("the sum never passed the limit: %d\n", most.load() <= static_cast<long>(1024 * kMiB));

  auto set_faults = reinterpret_cast<void (*)(const char*)>(dlsym(RTLD_DEFAULT, "xlog_sim_set_faults"));
  if (set_faults != nullptr) {
    set_faults("cuMemAlloc_v2:1+:2,cuMemAllocFromPoolAsync:1+:2");
    int failures = 0;
    for (int i = 0; i < 1000; ++i) {
      CUdeviceptr p = 0;
      failures += cuMemAlloc_v2(&p, 512 * kMiB) == CUDA_ERROR_OUT_OF_MEMORY;
    }
    set_faults("");
    std::printf("the driver refused: %d\n", failures);
  }
  CUdeviceptr all = 0;
  std::printf("then all of it: %d\n", cuMemAlloc_v2(&all, 1024 * kMiB));
  CUdeviceptr more = 1;
  CUresult refusal = cuMemAlloc_v2(&more, 1);
  std::printf("and one byte more: %d, p %llu\n", refusal, more);
  MUST(cuMemFree_v2(all));
  return 0;
}
