// Takes blocks of one byte above a MiB until it is refused.
#include "programs/program.h"

int main() {
  start();
  CUdeviceptr p = 0;
  for (int i = 0; i < 200 && cuMemAlloc_v2(&p, (1 << 20) + 1) == CUDA_SUCCESS; ++i) {
  }
  return 0;
}
