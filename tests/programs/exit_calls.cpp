// The driver calls that are made for a cuMemFree once exit has begun. On the simulated driver, which tells.
#include <dlfcn.h>
#include <unistd.h>

#include "programs/program.h"

namespace {

CUdeviceptr block = 0;
void (*watch)(void (*)(const char*)) = nullptr;

void free_it() {
  usleep(120'000);  // long enough for the library to want to look at the GPU again
  watch([](const char* name) { std::printf("%s\n", name); });
  CUresult result = cuMemFree_v2(block);
  watch(nullptr);
  std::printf("free: %d\n", result);
}

}  // namespace

int main() {
  watch = reinterpret_cast<void (*)(void (*)(const char*))>(dlsym(RTLD_DEFAULT, "xlog_sim_before_calls"));
  std::atexit(free_it);  // before the library's first call, so that it runs after the library knows
  start();
  block = must_alloc(1 << 20);
  return 0;
}
