// Switches its own log with the command: switched XLOG. With a number of threads, which make and free blocks all the while,
// many times: switched XLOG THREADS. With `between`, on the simulated driver: while a block is being made.
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "programs/program.h"

namespace {

int switch_log(const char* xlog, bool on) {
  std::fflush(stdout);
  return std::system((std::string(xlog) + " log " + (on ? "on " : "off ") + std::to_string(getpid())).c_str());
}

void one_thread(const char* xlog) {
  CUdeviceptr a = must_alloc(1000);
  CUdeviceptr b = must_alloc(2000);
  std::printf("off: %d\n", switch_log(xlog, false));
  CUdeviceptr c = must_alloc(4000);
  MUST(cuMemFree_v2(a));
  std::printf("on: %d\n", switch_log(xlog, true));
  must_alloc(8000);
  MUST(cuMemFree_v2(b));
  MUST(cuMemFree_v2(c));
}

void many_threads(const char* xlog, int threads) {
  CUcontext context = nullptr;
  MUST(cuCtxGetCurrent(&context));
  std::atomic<bool> stop{false};
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      MUST(cuCtxSetCurrent(context));
      CUdeviceptr kept[8] = {};
      for (size_t i = 0; !stop; ++i) {
        CUdeviceptr& place = kept[i * 7 % 8];
        if (place != 0) {
          MUST(cuMemFree_v2(place));
        }
        place = must_alloc(512 * (t + 1));
        usleep(200);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    if (switch_log(xlog, i % 2 != 0) != 0) {
      std::exit(4);
    }
  }
  stop = true;
  for (std::thread& each : all) {
    each.join();
  }
}

const char* command = nullptr;

void in_a_call(const char* name) {
  static bool once = false;
  if (std::strcmp(name, "cuMemAlloc_v2") == 0 && !once) {
    once = true;
    switch_log(command, true);
    CUcontext context = nullptr;
    MUST(cuCtxGetCurrent(&context));
    std::thread([=] {
      MUST(cuCtxSetCurrent(context));
      must_alloc(1000);
    }).join();
  }
}

void between(const char* xlog) {
  must_alloc(100);
  command = xlog;
  reinterpret_cast<void (*)(void (*)(const char*))>(dlsym(RTLD_DEFAULT, "xlog_sim_before_calls"))(in_a_call);
  MUST(cuMemFree_v2(must_alloc(5000)));
}

}  // namespace

int main(int argc, char** argv) {
  start();
  if (argc > 2 && std::strcmp(argv[2], "between") == 0) {
    between(argv[1]);
  } else if (argc > 2) {
    must_alloc(256);
    many_threads(argv[1], std::atoi(argv[2]));
  } else {
    one_thread(argv[1]);
  }
  return 0;
}
