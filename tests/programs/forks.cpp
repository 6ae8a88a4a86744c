// Children of a program that has blocks and a log: one that exits, one that becomes another program, one that is forked
// while threads allocate and uses the loader, one made by clone without the library's wrappers, one that allocates.
#include <dlfcn.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "programs/program.h"

namespace {

template <class Child>
void child(const char* what, bool raw_clone, Child run) {
  std::fflush(stdout);
  auto start_time = std::chrono::steady_clock::now();
  pid_t pid = raw_clone ? static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)) : fork();
  if (pid == 0) {
    run();
    std::_Exit(9);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  bool quick = std::chrono::steady_clock::now() - start_time < std::chrono::seconds(5);
  std::printf("%s: %d, quick %d\n", what, status, quick);
}

// Blocks come and go in threads that do, too: what an unwinder remembers of a thread's callers is gone with it.
void allocate_in_short_threads(CUcontext context, const std::atomic<bool>& stop) {
  while (!stop) {
    std::thread([context] {
      MUST(cuCtxSetCurrent(context));
      MUST(cuMemFree_v2(must_alloc(4096)));
    }).join();
  }
}

}  // namespace

int main() {
  CUcontext context = start();
  CUdeviceptr blocks[3];
  for (CUdeviceptr& each : blocks) {
    each = must_alloc(1 << 20);
  }
  child("exit", false, [] { std::exit(0); });
  child("exec", false, [] { execl("/bin/true", "true", static_cast<char*>(nullptr)); });
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back(allocate_in_short_threads, context, std::cref(stop));
  }
  for (int i = 0; i < 40; ++i) {
    child("loader, threads allocate", false, [] {
      void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
      bool found = dlsym(driver, "cuMemAlloc_v2") != nullptr && dlsym(RTLD_DEFAULT, "malloc") != nullptr;
      dlclose(driver);
      std::_Exit(found ? 0 : 1);
    });
  }
  stop = true;
  for (std::thread& each : threads) {
    each.join();
  }
  child("clone", true, [] { std::exit(0); });
  child("allocates", false, [] {
    CUdeviceptr p = 0;
    std::printf("in the child: %d\n", cuMemAlloc_v2(&p, 16));
    std::exit(0);
  });
  for (CUdeviceptr each : blocks) {
    MUST(cuMemFree_v2(each));
  }
  std::printf("the parent goes on\n");
  return 0;
}
