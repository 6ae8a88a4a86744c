// Two blocks, two findings.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr first = must_alloc(1000);
  CUdeviceptr second = must_alloc(2000);
  write_over(first, 1000, 1);
  write_over(second, 2000, 2);
  MUST(cuMemFree_v2(second));
  free_and_synchronise(first);
}

}  // namespace

MISUSE_PROGRAM
