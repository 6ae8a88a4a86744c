// Threads that end behind a free in their default stream. With `work`, behind a kernel there: driver 580.159 did not come back
// from the end of such threads (tests/gpu/results/guard-h200.txt, 6), so nothing of a library's own may be put there.
#include <cstring>
#include <string>
#include <thread>

#include "programs/misuse/misuse.h"

int main(int argc, char** argv) {
  bool work = argc > 1 && std::strcmp(argv[1], "work") == 0;
  misuse::begin(1, argv);
  CUcontext context = nullptr;
  MUST(cuCtxGetCurrent(&context));
  CUstream stream = misuse::make_stream();
  CUdeviceptr plain = must_alloc(4096);
  for (int i = 0; i < 20; ++i) {
    CUdeviceptr before = misuse::must_alloc_async(1000, stream);
    MUST(cuStreamSynchronize(stream));
    std::thread([&] {
      MUST(cuCtxSetCurrent(context));
      CUdeviceptr block = misuse::must_alloc_async(1000, CU_STREAM_PER_THREAD);
      if (work) {
        misuse::write(plain, 4096, CU_STREAM_PER_THREAD);
      }
      MUST(cuMemFreeAsync(block, CU_STREAM_PER_THREAD));
      MUST(cuMemFreeAsync(before, CU_STREAM_PER_THREAD));
    }).join();
  }
  MUST(cuCtxSynchronize());
  MUST(cuMemFree_v2(plain));
  std::printf("all threads have ended\n");
  return 0;
}
