// Many bytes past the end.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  write_over(block, 1000, 200);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
