// A signal handler calls exit() after so many microseconds, while the thread makes and frees memory: as many programs end on SIGINT.
#include <csignal>

#include <sys/time.h>

#include "programs/program.h"

int main(int, char** arguments) {
  start();
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  std::signal(SIGALRM, [](int) { std::exit(7); });
  CUdeviceptr lives = must_alloc(1000);
  itimerval after{};
  after.it_value.tv_usec = std::atoi(arguments[1]);
  setitimer(ITIMER_REAL, &after, nullptr);
  for (;;) {
    CUdeviceptr plain = must_alloc(4096);
    CUdeviceptr ordered = 0;
    MUST(cuMemAllocAsync(&ordered, 4096, stream));
    MUST(cuMemsetD8Async(lives, 1, 1000, stream));
    MUST(cuMemFreeAsync(ordered, stream));
    MUST(cuMemFree_v2(plain));
  }
}
