// What an array takes. The driver tells its requirements only of arrays that are given memory later, so one of the same
// description is made for the question; it takes none, and what it tells is what the other
// takes (tests/programs/surface.cpp).
#include "runtime/runtime.h"

namespace xlog {

bool Runtime::array_bytes(const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned levels, size_t& bytes) noexcept {
  bytes = 0;
  if ((description.Flags & (CUDA_ARRAY3D_DEFERRED_MAPPING | CUDA_ARRAY3D_SPARSE)) != 0) {
    return true;
  }
  CUDA_ARRAY3D_DESCRIPTOR later = description;
  later.Flags |= CUDA_ARRAY3D_DEFERRED_MAPPING;
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  CUresult result = CUDA_ERROR_NOT_SUPPORTED;
  int ordinal = current_device();
  if (levels == 0 && driver_.cuArrayGetMemoryRequirements != nullptr) {
    CUarray array = nullptr;
    result = driver_.cuArray3DCreate_v2(&array, &later);
    if (result == CUDA_SUCCESS) {
      result = driver_.cuArrayGetMemoryRequirements(&needs, array, ordinal);
      driver_.cuArrayDestroy(array);
    }
  } else if (levels != 0 && driver_.cuMipmappedArrayGetMemoryRequirements != nullptr) {
    CUmipmappedArray array = nullptr;
    result = driver_.cuMipmappedArrayCreate(&array, &later, levels);
    if (result == CUDA_SUCCESS) {
      result = driver_.cuMipmappedArrayGetMemoryRequirements(&needs, array, ordinal);
      driver_.cuMipmappedArrayDestroy(array);
    }
  }
  bytes = needs.size;
  return result == CUDA_SUCCESS;
}

}  // namespace xlog
