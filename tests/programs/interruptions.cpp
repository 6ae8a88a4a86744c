// interruptions HOW [ARGS]: what a program may do to a library inside it, beside calls that make and end memory.
//   refused            one request that no GPU can serve
//   data-file FILE     closes its three descriptors first; its data file becomes descriptor 2
//   exit-in-handler US calls exit() in a signal handler after so many microseconds
//   cancelled          a thread whose cancellation is pending makes calls, then another one
//   paused N FILE      N pairs, waits until FILE is there, N pairs again
//   pairs N            as fast as it can
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <string>

#include "programs/program.h"

namespace {

constexpr size_t kTooMuch = size_t{1} << 50;

int refused() {
  start();
  CUdeviceptr ptr = 0;
  CUresult much = cuMemAlloc_v2(&ptr, kTooMuch);
  cuMemFree_v2(must_alloc(4096));
  std::printf("%d\n", static_cast<int>(much));
  return 0;
}

int data_file(const char* path) {
  FILE* out = fdopen(dup(1), "w");
  for (int fd : {0, 1, 2}) {
    close(fd);
  }
  bool opened = open("/dev/null", O_RDWR) == 0 && open("/dev/null", O_RDWR) == 1;
  int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
  bool written = write(fd, "DATA", 4) == 4;
  start();
  CUdeviceptr ptr = 0;
  cuMemAlloc_v2(&ptr, kTooMuch);
  written = write(fd, "MORE", 4) == 4 && written;
  std::fprintf(out, "descriptor %d\n", opened && written ? fd : -1);
  std::fclose(out);
  return 0;
}

void pairs(int count) {
  for (int i = 0; i < count; ++i) {
    MUST(cuMemFree_v2(must_alloc(4096)));
  }
}

void signal_every(useconds_t interval) {
  itimerval timer{.it_interval = {.tv_sec = 0, .tv_usec = interval}, .it_value = {.tv_sec = 0, .tv_usec = interval}};
  setitimer(ITIMER_REAL, &timer, nullptr);
}

int exit_in_handler(useconds_t after) {
  start();
  signal(SIGALRM, [](int) { exit(0); });
  signal_every(after);
  for (;;) {
    pairs(1);
  }
}

struct Victim {
  CUcontext context;
  bool finished;
};

void* be_cancelled(void* given) {
  auto* victim = static_cast<Victim*>(given);
  cuCtxSetCurrent(victim->context);
  pthread_cancel(pthread_self());
  pairs(2000);
  victim->finished = true;
  pthread_testcancel();
  return nullptr;
}

int cancelled() {
  Victim victim{.context = start(), .finished = false};
  pthread_t thread{};
  pthread_create(&thread, nullptr, be_cancelled, &victim);
  pthread_join(thread, nullptr);
  pairs(2000);
  std::printf("finished %d, goes on\n", victim.finished ? 1 : 0);
  return 0;
}

int paused(int count, const char* file) {
  start();
  pairs(count);
  std::puts("half");
  std::fflush(stdout);
  while (access(file, F_OK) != 0) {
    usleep(1000);
  }
  pairs(count);
  std::puts("done");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string how = argc > 1 ? argv[1] : "";
  if (how == "refused") {
    return refused();
  }
  if (how == "data-file" && argc > 2) {
    return data_file(argv[2]);
  }
  if (how == "exit-in-handler" && argc > 2) {
    return exit_in_handler(static_cast<useconds_t>(std::atoi(argv[2])));
  }
  if (how == "cancelled") {
    return cancelled();
  }
  if (how == "paused" && argc > 3) {
    return paused(std::atoi(argv[2]), argv[3]);
  }
  if (how == "pairs" && argc > 2) {
    start();
    pairs(std::atoi(argv[2]));
    std::puts("done");
    return 0;
  }
  return 2;
}
