// The write is in the stream, the free follows at once.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUdeviceptr block = must_alloc(1000);
  for (int i = 0; i < 100; ++i) {
    write(block, 1000);
  }
  write_over(block, 1000, 1);
  free_and_synchronise(block);
}

}  // namespace

MISUSE_PROGRAM
