// storms PLUGIN-FOLDER ROUNDS: what programs do at moments that are delicate for a library inside them, so often. Always ends: an
// alarm kills it otherwise. On the driver that does nothing, so that there are no locks but the loader's and the library's.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

#include "programs/program.h"

namespace {

std::string plugins;
CUcontext context = nullptr;
pthread_key_t key;

void free_late(void* value) { MUST(cuMemFree_v2(reinterpret_cast<CUdeviceptr>(value))); }

void open_and_close(const char* plugin) {
  void* handle = dlopen((plugins + plugin).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    std::printf("%s\n", dlerror());
    std::exit(4);
  }
  auto run = reinterpret_cast<CUdeviceptr (*)()>(dlsym(handle, "run"));
  if (run != nullptr) {
    MUST(cuMemFree_v2(run()));
  }
  dlclose(handle);
}

void fork_one(int round) {
  pid_t pid = fork();
  if (pid == 0) {
    open_and_close("/allocates_a.so");
    round % 2 == 0 ? std::exit(0) : _exit(0);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  if (status != 0) {
    std::printf("child %d: %d\n", round, status);
  }
}

void thread_that_frees_late() {
  std::thread([] {
    MUST(cuCtxSetCurrent(context));
    pthread_setspecific(key, reinterpret_cast<void*>(must_alloc(64)));
  }).join();
}

template <class Round>
void storm(const char* name, int rounds, Round round) {
  std::atomic<bool> stop{false};
  std::thread beside([&] {
    MUST(cuCtxSetCurrent(context));
    while (!stop) {
      MUST(cuMemFree_v2(must_alloc(4096)));
      usleep(50);
    }
  });
  for (int i = 0; i < rounds; ++i) {
    round(i);
  }
  stop = true;
  beside.join();
  std::printf("%s: %d\n", name, rounds);
  std::fflush(stdout);
}

}  // namespace

int main(int, char** argv) {
  plugins = argv[1];
  int rounds = std::atoi(argv[2]);
  alarm(60 + static_cast<unsigned>(rounds) / 10);
  context = start();
  pthread_key_create(&key, free_late);
  storm("libraries that come and go", rounds, [](int i) { open_and_close(i % 2 == 0 ? "/allocates_a.so" : "/allocates_b.so"); });
  storm("constructors that allocate", rounds, [](int) { open_and_close("/constructor.so"); });
  storm("threads that free when they are gone", rounds, [](int) { thread_that_frees_late(); });
  storm("children", rounds, fork_one);
  return 0;
}
