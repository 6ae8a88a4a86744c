// A block that is freed until the driver knows it no longer.
#include "programs/program.h"

int main() {
  start();
  CUdeviceptr p = must_alloc(1 << 20);
  for (int i = 0; i < 3; ++i) {
    std::printf("free: %d\n", cuMemFree_v2(p));
  }
  return 0;
}
