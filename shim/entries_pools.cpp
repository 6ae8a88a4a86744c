// What the driver says of a pool. Its figures of what is used are shown as they would be without a guard; everything else, and
// everything where there is no guard, is the driver's answer.
#include "shim/entry.h"

using xlog::Entry;
using xlog::Row;

extern "C" {

XLOG_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Entry entry(Row::cuMemPoolGetAttribute);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuMemPoolGetAttribute)>(pool, attribute, value); };
  return entry.serves() ? entry.runtime().pool_figure(pool, attribute, value, call) : call();
}

XLOG_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  Entry entry(Row::cuMemPoolSetAttribute);
  CUresult result = entry.forward<decltype(&::cuMemPoolSetAttribute)>(pool, attribute, value);
  if (result == CUDA_SUCCESS && attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH && entry.serves()) {
    entry.runtime().pool_highest_reset(pool);
  }
  return result;
}

}  // extern "C"
