// A kernel writes past the end of a block; others that do not follow it.
#include "programs/misuse/misuse.h"

int main(int argc, char** argv) {
  misuse::begin(argc, argv);
  CUdeviceptr block = must_alloc(1000);
  misuse::write(block + 1000, 1);
  for (int i = 0; i < 6; ++i) {
    misuse::write(block, 1000);
  }
  MUST(cuCtxSynchronize());
  misuse::show("free", cuMemFree_v2(block));
  return 0;
}
