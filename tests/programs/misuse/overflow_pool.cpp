// A byte past the end of memory from a pool of the program.
#include "programs/misuse/misuse.h"

namespace {

using namespace misuse;

void run() {
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  CUmemoryPool pool = nullptr;
  MUST(cuMemPoolCreate(&pool, &properties));
  CUstream stream = make_stream();
  CUdeviceptr block = 0;
  MUST(cuMemAllocFromPoolAsync(&block, 1000, pool, stream));
  write_over(block, 1000, 1, stream);
  show("free", cuMemFreeAsync(block, stream));
  show("synchronise", cuStreamSynchronize(stream));
}

}  // namespace

MISUSE_PROGRAM
