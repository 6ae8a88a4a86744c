// unwind PLUGIN-FOLDER: allocations where taking a stack is delicate. Always ends.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "programs/program.h"

namespace {

std::string plugins;
CUcontext context = nullptr;

void in_a_constructor() {
  if (dlopen((plugins + "/constructor.so").c_str(), RTLD_NOW) == nullptr) {
    std::printf("%s\n", dlerror());
  }
}

struct FreesLate {
  CUdeviceptr p = 0;
  ~FreesLate() {
    if (p != 0) {
      std::printf("in a thread's destructor: %d\n", cuMemFree_v2(p));
    }
  }
};
thread_local FreesLate late;

pthread_key_t key;
void key_destructor(void* value) { std::printf("in a key's destructor: %d\n", cuMemFree_v2(reinterpret_cast<CUdeviceptr>(value))); }

void while_libraries_come_and_go() {
  std::atomic<bool> stop{false};
  std::vector<std::thread> all;
  for (int i = 0; i < 8; ++i) {
    all.emplace_back([&, i] {
      cuCtxSetCurrent(context);
      while (!stop) {
        if (i % 2 == 0) {
          void* handle = dlopen((plugins + (i % 4 == 0 ? "/allocates_a.so" : "/allocates_b.so")).c_str(), RTLD_NOW | RTLD_LOCAL);
          if (handle != nullptr) {
            auto run = reinterpret_cast<CUdeviceptr (*)()>(dlsym(handle, "run"));
            cuMemFree_v2(run());
            dlclose(handle);
          }
        } else {
          cuMemFree_v2(must_alloc(64));
        }
      }
    });
  }
  usleep(300'000);
  stop = true;
  for (auto& each : all) {
    each.join();
  }
  std::printf("libraries came and went\n");
}

std::atomic<int> in_handler{0};
void on_alarm(int) {
  CUdeviceptr p = 0;
  if (cuMemGetInfo_v2(nullptr, nullptr) == CUDA_SUCCESS) {
    ++in_handler;
  }
  static_cast<void>(p);
}

// A handler that comes while the library is at work: forwarded, not a deadlock. (The driver itself promises nothing
// here; asking for its memory is as far as a handler can go on the simulated one, which holds one lock.)
void in_a_signal_handler() {
  struct sigaction action {};
  action.sa_handler = on_alarm;
  sigaction(SIGUSR1, &action, nullptr);
  for (int i = 0; i < 100; ++i) {
    raise(SIGUSR1);
    MUST(cuMemFree_v2(must_alloc(64)));
  }
  std::printf("handlers: %d\n", in_handler.load());
}

__attribute__((noinline)) void allocate_then_throw(int depth) {
  if (depth > 0) {
    allocate_then_throw(depth - 1);
    __asm__ volatile("");
    return;
  }
  MUST(cuMemFree_v2(must_alloc(64)));
  throw std::runtime_error("thrown through frames that were traced");
}

void exceptions() {
  int caught = 0;
  for (int i = 0; i < 100; ++i) {
    try {
      allocate_then_throw(i);
    } catch (const std::exception&) {
      ++caught;
    }
  }
  std::printf("caught %d\n", caught);
}

}  // namespace

int main(int, char** argv) {
  plugins = argv[1];
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  context = start();
  in_a_constructor();
  pthread_key_create(&key, key_destructor);
  std::thread([] {
    cuCtxSetCurrent(context);
    late.p = must_alloc(64);
    pthread_setspecific(key, reinterpret_cast<void*>(must_alloc(64)));
  }).join();
  while_libraries_come_and_go();
  in_a_signal_handler();
  exceptions();
  return 0;
}
