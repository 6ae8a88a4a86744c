// A signal handler that allocates, also while the library is at work in the interrupted call. Runs on the driver that
// does nothing: the simulated one, as a real one, holds locks of its own that a handler may not ask for again.
#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include "programs/program.h"

namespace {

volatile sig_atomic_t handled = 0;

void on_timer(int) {
  CUdeviceptr p = 0;
  if (cuMemAlloc_v2(&p, 64) == CUDA_SUCCESS) {
    cuMemFree_v2(p);
  }
  handled = handled + 1;
}

}  // namespace

int main() {
  start();
  MUST(cuMemFree_v2(must_alloc(64)));  // the log is open before handlers come
  struct sigaction action {};
  action.sa_handler = on_timer;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  itimerval often{{0, 50}, {0, 50}};
  setitimer(ITIMER_REAL, &often, nullptr);
  for (time_t end = time(nullptr) + 2; time(nullptr) < end;) {
    MUST(cuMemFree_v2(must_alloc(64)));
  }
  itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
  std::printf("handlers ran: %d\n", handled > 1000);
  return 0;
}
