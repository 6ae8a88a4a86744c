// A byte 100 KiB past the end: no zone is there.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(512);
  write(wrong ? block + 512 + (100 << 10) : block, 1);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
