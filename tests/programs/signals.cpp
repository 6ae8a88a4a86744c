// signals HANDLERS: a signal handler that allocates, also while the library is at work in the interrupted call. Runs on the driver that
// does nothing: the simulated one, as a real one, holds locks of its own that a handler may not ask for again.
#include <signal.h>
#include <sys/time.h>

#include "programs/program.h"

namespace {

int handlers = 0;
volatile sig_atomic_t handled = 0;

// One shot: a machine on which a handler takes longer than a period would run nothing but handlers.
void arm() {
  itimerval soon{{0, 0}, {0, 50}};
  setitimer(ITIMER_REAL, &soon, nullptr);
}

void on_timer(int) {
  CUdeviceptr p = 0;
  if (cuMemAlloc_v2(&p, 64) == CUDA_SUCCESS) {
    cuMemFree_v2(p);
  }
  handled = handled + 1;
  if (handled < handlers) {
    arm();
  }
}

}  // namespace

int main(int, char** argv) {
  handlers = std::atoi(argv[1]);
  start();
  MUST(cuMemFree_v2(must_alloc(64)));  // the log is open before handlers come
  struct sigaction action {};
  action.sa_handler = on_timer;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  arm();
  while (handled < handlers) {
    MUST(cuMemFree_v2(must_alloc(64)));
  }
  std::printf("handlers ran: %d\n", static_cast<int>(handled));
  return 0;
}
