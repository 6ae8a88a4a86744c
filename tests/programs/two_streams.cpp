// A kernel in one stream, and one in another that writes past the end of a block.
#include "programs/misuse/misuse.h"

int main(int argc, char** argv) {
  misuse::begin(argc, argv);
  CUdeviceptr block = must_alloc(1000);
  misuse::write(block, 1000, misuse::make_stream());
  MUST(cuCtxSynchronize());
  misuse::write(block + 1000, 1, misuse::make_stream());
  MUST(cuCtxSynchronize());
  misuse::show("free", cuMemFree_v2(block));
  return 0;
}
