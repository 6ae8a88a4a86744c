// A byte past the last row of pitched memory.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = 0;
  size_t pitch = 0;
  MUST(cuMemAllocPitch_v2(&block, &pitch, 1000, 7, 4));
  write_over(block, pitch * 7, 1);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
