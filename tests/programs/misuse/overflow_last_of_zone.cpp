// One byte, 255 bytes past the end.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  write(block + (wrong ? 1000 + 255 : 255), 1);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
