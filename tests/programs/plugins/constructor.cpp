#include <thread>

#include "programs/program.h"

namespace {
// Inside dlopen: a thread allocates, and its end is waited for.
struct Loaded {
  Loaded() {
    CUcontext context = nullptr;
    cuCtxGetCurrent(&context);
    std::thread([context] {
      cuCtxSetCurrent(context);
      CUdeviceptr p = 0;
      std::printf("in a constructor: %d\n", cuMemAlloc_v2(&p, 100));
      cuMemFree_v2(p);
    }).join();
  }
} loaded;
}  // namespace
