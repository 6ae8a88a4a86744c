// Answered calls: what a program is told of the memory that it may use.
#include "shim/entry.h"

using xlog::Entry;
using xlog::Row;

extern "C" {

XLOG_EXPORT CUresult cuMemGetInfo_v2(size_t* free, size_t* total) {
  Entry entry(Row::cuMemGetInfo_v2);
  if (!entry.serves()) {
    return entry.forward<xlog::cuMemGetInfo_v2_t>(free, total);
  }
  return entry.runtime().memory_info(free, total);
}

XLOG_EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  Entry entry(Row::cuDeviceTotalMem_v2);
  if (!entry.serves()) {
    return entry.forward<xlog::cuDeviceTotalMem_v2_t>(bytes, device);
  }
  return entry.runtime().total_memory(bytes, device);
}

XLOG_EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr ptr) {
  using Call = xlog::cuMemGetAddressRange_v2_t;
  Entry entry(Row::cuMemGetAddressRange_v2);
  if (!entry.serves() || !entry.runtime().hides_memory()) {
    return entry.forward<Call>(base, size, ptr);
  }
  CUdeviceptr found = base != nullptr ? *base : 0;
  size_t bytes = size != nullptr ? *size : 0;
  CUresult result = entry.forward<Call>(&found, &bytes, entry.runtime().as_without_guard(ptr));
  if (result == CUDA_SUCCESS) {
    entry.runtime().as_asked_for(found, bytes);
  }
  if (base != nullptr) {
    *base = found;
  }
  if (size != nullptr) {
    *size = bytes;
  }
  return result;
}

XLOG_EXPORT CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr ptr) {
  using Call = decltype(&::cuPointerGetAttribute);
  Entry entry(Row::cuPointerGetAttribute);
  if (!entry.serves() || !entry.runtime().hides_memory()) {
    return entry.forward<Call>(data, attribute, ptr);
  }
  CUresult result = entry.forward<Call>(data, attribute, entry.runtime().as_without_guard(ptr));
  if (result == CUDA_SUCCESS) {
    entry.runtime().fix_attribute(attribute, data, ptr);
  }
  return result;
}

XLOG_EXPORT CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data, CUdeviceptr ptr) {
  using Call = decltype(&::cuPointerGetAttributes);
  Entry entry(Row::cuPointerGetAttributes);
  if (!entry.serves() || !entry.runtime().hides_memory()) {
    return entry.forward<Call>(count, attributes, data, ptr);
  }
  CUdeviceptr asked = entry.runtime().as_without_guard(ptr);
  CUresult result = entry.forward<Call>(count, attributes, data, asked);
  for (unsigned i = 0; result == CUDA_SUCCESS && asked == ptr && i < count; ++i) {
    entry.runtime().fix_attribute(attributes[i], data[i], ptr);
  }
  return result;
}

}  // extern "C"
