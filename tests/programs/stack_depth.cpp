// Bytes of stack that a thread's allocations and frees reach, measured on a painted stack. Run natively and under the
// library, the difference is what an entry of the library takes.
#include <pthread.h>

#include <vector>

#include "programs/program.h"

namespace {

constexpr size_t kBytes = 1 << 20;
CUcontext context = nullptr;

void* work(void*) {
  MUST(cuCtxSetCurrent(context));
  for (int i = 0; i < 100; ++i) {
    CUdeviceptr q = 0;
    MUST(cuMemFree_v2(must_alloc(1000)));
    MUST(cuMemAllocAsync(&q, 1000, nullptr));
    MUST(cuMemFreeAsync(q, nullptr));
    static_cast<void>(cuMemFree_v2(0xdead000));
  }
  return nullptr;
}

}  // namespace

int main() {
  context = start();
  void* stack = std::aligned_alloc(4096, kBytes);
  std::memset(stack, 0x5a, kBytes);
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kBytes);
  pthread_create(&thread, &attributes, work, nullptr);
  pthread_join(thread, nullptr);
  size_t untouched = 0;
  while (untouched < kBytes && static_cast<unsigned char*>(stack)[untouched] == 0x5a) {
    ++untouched;
  }
  std::printf("%zu\n", kBytes - untouched);
  return 0;
}
