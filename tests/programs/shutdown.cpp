// shutdown HOW: frees after main has ended, and other ends of a process. The exit status is 7 unless HOW kills it.
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <thread>

#include "programs/program.h"

namespace {

struct Holder {
  CUdeviceptr p = 0;
  const char* who;
  explicit Holder(const char* name) : who(name) {}
  ~Holder() {
    if (p != 0) {
      std::printf("%s: free %d\n", who, cuMemFree_v2(p));
    }
  }
};

Holder global("static object");
thread_local Holder local("thread_local object");
CUdeviceptr for_handler = 0;
void handler() { std::printf("atexit handler: free %d\n", cuMemFree_v2(for_handler)); }

}  // namespace

int main(int, char** argv) {
  std::string_view how = argv[1];
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::atexit(handler);
  CUcontext context = start();
  global.p = must_alloc(1000);
  for_handler = must_alloc(2000);
  std::thread([&] {
    MUST(cuCtxSetCurrent(context));
    local.p = must_alloc(3000);
  }).join();
  for (int i = 0; i < 10000; ++i) {
    MUST(cuMemFree_v2(must_alloc(static_cast<size_t>(i) + 1)));
  }
  if (how == "detached") {
    std::thread([&] {
      cuCtxSetCurrent(context);
      for (;;) {
        CUdeviceptr p = 0;
        if (cuMemAlloc_v2(&p, 64) == CUDA_SUCCESS) {
          cuMemFree_v2(p);
        }
      }
    }).detach();
    usleep(20'000);
  } else if (how == "exit") {
    std::exit(7);
  } else if (how == "_exit") {
    _exit(7);
  } else if (how == "quick_exit") {
    std::quick_exit(7);
  } else if (how == "abort") {
    std::abort();
  } else if (how == "segv") {
    raise(SIGSEGV);
  } else if (how == "kill") {
    raise(SIGKILL);
  }
  return 7;
}
