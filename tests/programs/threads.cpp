// threads N LOOPS: allocate and free in N threads; addresses come back at once, in other threads.
#include <pthread.h>

#include <thread>
#include <vector>

#include "programs/program.h"

int main(int, char** argv) {
  int threads = std::atoi(argv[1]);
  int loops = std::atoi(argv[2]);
  CUcontext context = start();
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([=] {
      pthread_setname_np(pthread_self(), "wo,rk\"er");
      MUST(cuCtxSetCurrent(context));
      for (int k = 0; k < loops; ++k) {
        CUdeviceptr p = must_alloc(512);
        CUdeviceptr q = 0;
        MUST(cuMemAllocAsync(&q, 4096, CU_STREAM_PER_THREAD));
        MUST(cuMemFree_v2(p));
        MUST(cuMemFreeAsync(q, CU_STREAM_PER_THREAD));
      }
    });
  }
  for (auto& each : all) {
    each.join();
  }
  std::printf("allocations %d\n", 2 * threads * loops);
  return 0;
}
