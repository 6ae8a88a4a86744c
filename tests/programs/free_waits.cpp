// cuMemFree waits for the work of the block's context, on a non-blocking stream too and whatever the block's size: the
// guard's last look at a zone stands on it.
#include <initializer_list>

#include "programs/misuse/misuse.h"

int main(int argc, char** argv) {
  misuse::begin(argc, argv);
  constexpr size_t kWork = 4 << 20;  // bytes that one thread stores: some milliseconds
  CUstream stream = misuse::make_stream();
  CUevent behind = nullptr;
  MUST(cuEventCreate(&behind, CU_EVENT_DISABLE_TIMING));
  CUdeviceptr other = must_alloc(kWork);
  for (size_t bytes : {size_t{1}, size_t{1000}, size_t{65536}, size_t{1} << 20, (size_t{1} << 20) + 256, size_t{64} << 20}) {
    CUdeviceptr block = must_alloc(bytes);
    misuse::write(other, kWork, stream);
    MUST(cuEventRecord(behind, stream));
    MUST(cuMemFree_v2(block));
    std::printf("%zu bytes are free, the work before: %d\n", bytes, cuEventQuery(behind));
  }
  return 0;
}
