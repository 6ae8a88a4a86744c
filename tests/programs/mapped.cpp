// Two pieces of physical memory, mapped one after the other; the second is unmapped again. Prints where the first is.
#include <initializer_list>

#include "programs/program.h"

int main() {
  start();
  constexpr size_t kGranule = 2 << 20;
  CUmemAllocationProp prop{};
  prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  prop.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUdeviceptr va = 0;
  MUST(cuMemAddressReserve(&va, 4 * kGranule, 0, 0, 0));
  for (CUdeviceptr at : {va, va + kGranule}) {
    CUmemGenericAllocationHandle handle = 0;
    MUST(cuMemCreate(&handle, kGranule, &prop, 0));
    MUST(cuMemMap(at, kGranule, 0, handle, 0));
    MUST(cuMemRelease(handle));
  }
  MUST(cuMemUnmap(va + kGranule, kGranule));
  std::printf("0x%llx\n", static_cast<unsigned long long>(va));
  return 0;
}
