// What a plain block refuses: copies and sets that begin before it, and the handle of mapped memory.
#include <initializer_list>

#include "programs/program.h"

int main() {
  start();
  for (size_t bytes : {size_t{1000}, size_t{3} << 20}) {
    CUdeviceptr block = must_alloc(bytes);
    char host[16] = {};
    std::printf("%zu: two bytes from one before: %d, to there: %d, set: %d\n", bytes, cuMemcpyDtoH_v2(host, block - 1, 2),
                cuMemcpyHtoD_v2(block - 1, host, 2), cuMemsetD8_v2(block - 1, 0, 2));
    CUmemGenericAllocationHandle handle = 0;
    std::printf("%zu: handle: %d\n", bytes, cuMemRetainAllocationHandle(&handle, reinterpret_cast<void*>(block)));
    std::printf("%zu: from its first byte: %d\n", bytes, cuMemcpyDtoH_v2(host, block, 16));
  }
  return 0;
}
