// Arrays: block-linear memory of 64 KiB steps, whose requirements are those that an H200 told.
#include <algorithm>

#include "tests/sim/driver.h"

namespace sim {

namespace {

struct Array {
  uint64_t memory = 0;  // key of its block; 0: memory is given later
  Context* context = nullptr;
  size_t bytes = 0;
};
std::map<void*, Array>& arrays() {
  static auto* all = new std::map<void*, Array>;
  return *all;
}

size_t element_bytes(CUarray_format format) {
  switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
      return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
      return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
      return 4;
    default:
      return 0;
  }
}

size_t up(size_t value, size_t step) { return (value + step - 1) / step * step; }

// Rows of 64 bytes in blocks of up to 128 rows.
size_t level_bytes(size_t width_bytes, size_t height, size_t depth) {
  size_t rows = 8;
  while (rows < 128 && rows < height) {
    rows *= 2;
  }
  bool flat = depth <= 1;
  size_t tall = flat ? up(std::max<size_t>(height, 1), rows) : up(height, std::min<size_t>(rows, 16));
  return up(width_bytes, 64) * tall * (flat ? 1 : up(depth, 8));
}

size_t requirement(const CUDA_ARRAY3D_DESCRIPTOR& d, unsigned levels) {
  constexpr size_t kPage = 64 << 10;
  size_t element = element_bytes(d.Format) * d.NumChannels;
  bool layered = (d.Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;
  size_t bytes = 0;
  for (unsigned level = 0; level < levels; ++level) {
    auto at = [level](size_t n) { return std::max<size_t>(n >> level, 1); };
    bytes += level_bytes(at(d.Width) * element, at(d.Height), layered || d.Depth == 0 ? 0 : at(d.Depth));
  }
  return up(bytes, kPage) * (layered ? std::max<size_t>(d.Depth, 1) : 1);
}

CUresult create(const char* name, void** out, const CUDA_ARRAY3D_DESCRIPTOR* d, unsigned levels) {
  Call call(name, Call::Needs::context, false, Call::Beside::unsafe);
  bool channels = d != nullptr && (d->NumChannels == 1 || d->NumChannels == 2 || d->NumChannels == 4);
  if (call.failed() || out == nullptr || !channels || d->Width == 0 || element_bytes(d->Format) == 0 || levels == 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  bool sparse = (d->Flags & CUDA_ARRAY3D_SPARSE) != 0;
  bool later = (d->Flags & CUDA_ARRAY3D_DEFERRED_MAPPING) != 0;
  if (sparse && later) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Array made{0, call.context(), requirement(*d, levels)};
  if (!sparse && !later) {
    CUresult result = allocate_plain(*call.context(), made.bytes, made.memory);
    if (result != CUDA_SUCCESS) {
      return result;
    }
    Driver::get().blocks.at(made.memory).sort = Block::Sort::array;
  }
  *out = new char;
  arrays()[*out] = made;
  return CUDA_SUCCESS;
}

// A context that is gone has taken them with it.
CUresult destroy(const char* name, void* array) {
  Call call(name, Call::Needs::init);
  auto it = arrays().find(array);
  if (call.failed() || it == arrays().end()) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_HANDLE;
  }
  auto& blocks = Driver::get().blocks;
  auto block = it->second.memory != 0 ? blocks.find(it->second.memory) : blocks.end();
  if (block != blocks.end() && block->second.sort == Block::Sort::array) {
    release_plain(block->second);
    end_life(block->second.serial);
    blocks.erase(block);
  }
  delete static_cast<char*>(array);
  arrays().erase(it);
  return CUDA_SUCCESS;
}

CUresult requirements(const char* name, CUDA_ARRAY_MEMORY_REQUIREMENTS* out, void* array) {
  Call call(name, Call::Needs::context);
  auto it = arrays().find(array);
  if (call.failed() || it == arrays().end() || it->second.memory != 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  *out = {.size = it->second.bytes, .alignment = 64 << 10, .reserved = {}};
  return CUDA_SUCCESS;
}

}  // namespace

}  // namespace sim

using namespace sim;

SIM_EXPORT CUresult cuArrayCreate_v2(CUarray* out, const CUDA_ARRAY_DESCRIPTOR* d) {
  CUDA_ARRAY3D_DESCRIPTOR whole{};
  if (d != nullptr) {
    whole = {.Width = d->Width, .Height = d->Height, .Depth = 0, .Format = d->Format, .NumChannels = d->NumChannels, .Flags = 0};
  }
  return create("cuArrayCreate_v2", reinterpret_cast<void**>(out), d != nullptr ? &whole : nullptr, 1);
}
SIM_EXPORT CUresult cuArray3DCreate_v2(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR* d) {
  return create("cuArray3DCreate_v2", reinterpret_cast<void**>(out), d, 1);
}
SIM_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray* out, const CUDA_ARRAY3D_DESCRIPTOR* d, unsigned levels) {
  return create("cuMipmappedArrayCreate", reinterpret_cast<void**>(out), d, levels);
}
SIM_EXPORT CUresult cuArrayDestroy(CUarray array) { return destroy("cuArrayDestroy", array); }
SIM_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array) { return destroy("cuMipmappedArrayDestroy", array); }
SIM_EXPORT CUresult cuArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUarray array, CUdevice) {
  return requirements("cuArrayGetMemoryRequirements", out, array);
}
SIM_EXPORT CUresult cuMipmappedArrayGetMemoryRequirements(CUDA_ARRAY_MEMORY_REQUIREMENTS* out, CUmipmappedArray array, CUdevice) {
  return requirements("cuMipmappedArrayGetMemoryRequirements", out, array);
}
