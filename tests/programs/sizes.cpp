// A pitched block that is larger than what was asked for, and blocks of three sizes, of which the larger half is freed again; then one that
// cannot be had, and a context that ends.
#include <vector>

#include "programs/program.h"

int main() {
  CUcontext context = nullptr;
  start();
  MUST(cuCtxCreate_v2(&context, 0, 0));
  std::vector<CUdeviceptr> blocks;
  CUdeviceptr pitched = 0;
  size_t pitch = 0;
  MUST(cuMemAllocPitch_v2(&pitched, &pitch, 100, 200, 4));
  for (int i = 0; i < 4000; ++i) {
    blocks.push_back(must_alloc(4096));
    if (i % 4 == 0) {
      blocks.push_back(must_alloc(65536));
    }
    if (i % 80 == 0) {
      blocks.push_back(must_alloc(4 << 20));
    }
  }
  for (size_t i = 0; i < blocks.size() / 2; ++i) {
    MUST(cuMemFree_v2(blocks[i]));
  }
  CUdeviceptr none = 0;
  std::printf("refused: %d\n", cuMemAlloc_v2(&none, size_t{1} << 40));
  std::printf("too small for a row and refused: %d\n", cuMemAlloc_v2(nullptr, 1));
  MUST(cuCtxDestroy_v2(context));
  return 0;
}
