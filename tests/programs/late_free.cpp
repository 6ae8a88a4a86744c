// cuMemFree in a static destructor: it waits for the kernel that still writes to the block.
#include <unistd.h>

#include <thread>

#include "programs/program.h"

namespace {

CUdeviceptr block = 0;
uint32_t* flag = nullptr;
std::atomic<bool> let_go{false};

struct Late {
  ~Late() {
    CUresult result = cuMemFree_v2(block);
    std::printf("the free waited: %d, code %d\n", let_go.load() ? 1 : 0, result);
    std::fflush(stdout);
    _exit(0);
  }
} late;

}  // namespace

int main() {
  start();
  CUmodule module = nullptr;
  CUfunction stand = nullptr;
  CUstream stream = nullptr;
  MUST(cuModuleLoadData(&module, "x"));
  MUST(cuModuleGetFunction(&stand, module, "stand"));  // a kernel of the simulated driver: it runs until the flag is set
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  block = must_alloc(4096);
  MUST(cuMemAllocHost_v2(reinterpret_cast<void**>(&flag), 4));
  *flag = 0;
  void* arguments[] = {&flag};
  MUST(cuLaunchKernel(stand, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr));
  std::thread([] {
    usleep(300'000);
    let_go = true;
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
  }).detach();
  return 0;
}
