// A program that knows of the library asks for a check of all zones, before and after it wrote past the end of a block.
#include "programs/misuse/misuse.h"
#include "shim/xlog_preload.h"

int main(int argc, char** argv) {
  misuse::begin(argc, argv);
  if (xlog_guard_check == nullptr) {
    std::printf("without the library\n");
    return 0;
  }
  CUdeviceptr block = must_alloc(1000);
  std::printf("before: %u\n", xlog_guard_check());
  misuse::write_over(block, 1000, 1);
  MUST(cuCtxSynchronize());
  std::printf("after: %u\n", xlog_guard_check());
  std::printf("again: %u\n", xlog_guard_check());
  misuse::show("free", cuMemFree_v2(block));
  return 0;
}
