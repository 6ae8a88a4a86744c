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

}  // extern "C"
