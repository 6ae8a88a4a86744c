// Accounted calls: physical memory that programs map themselves, and managed memory.
#include "shim/entry.h"

using xlog::AllocationRequest;
using xlog::DriverCall;
using xlog::Entry;
using xlog::FreeRequest;
using xlog::Kind;
using xlog::Row;

namespace {

// What every driver seen so far asks of a size.
constexpr size_t kGranule = 2 << 20;

bool is_on_device(const CUmemAllocationProp* prop) noexcept {
  return prop != nullptr && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

}  // namespace

extern "C" {

XLOG_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t size, const CUmemAllocationProp* prop,
                                 unsigned long long flags) {
  Entry entry(Row::cuMemCreate);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuMemCreate)>(handle, size, prop, flags); };
  if (entry.refused()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!entry.serves() || handle == nullptr || size == 0 || !is_on_device(prop)) {
    return call();
  }
  CUmemGenericAllocationHandle none = 0;
  size_t never = xlog::kNeverServed + size % kGranule;  // a size that is no multiple stays one
  auto judge = [&](uint64_t&) noexcept { return entry.forward<decltype(&::cuMemCreate)>(&none, never, prop, flags); };
  DriverCall judging(judge);
  AllocationRequest request{
      .bytes = size, .caller = XLOG_CALLER, .kind = Kind::vmm, .api = "cuMemCreate", .device = prop->location.id, .never = &judging};
  auto own = xlog::making(handle, call);
  uint64_t made = 0;
  return entry.runtime().create_physical(request, DriverCall(own), made);
}

XLOG_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* address) {
  Entry entry(Row::cuMemRetainAllocationHandle);
  if (entry.serves() && entry.runtime().is_fenced(reinterpret_cast<CUdeviceptr>(address))) {
    return CUDA_ERROR_INVALID_VALUE;  // as for plain memory (measured)
  }
  CUresult result = entry.forward<decltype(&::cuMemRetainAllocationHandle)>(handle, address);
  if (result == CUDA_SUCCESS && entry.serves()) {
    entry.runtime().physical().retained(*handle);
  }
  return result;
}

XLOG_EXPORT CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle, void* os_handle, CUmemAllocationHandleType type) {
  Entry entry(Row::cuMemImportFromShareableHandle);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuMemImportFromShareableHandle)>(handle, os_handle, type); };
  if (!entry.serves() || handle == nullptr) {
    return call();
  }
  AllocationRequest request{.caller = XLOG_CALLER, .kind = Kind::import, .api = "cuMemImportFromShareableHandle"};
  auto own = xlog::making(handle, call);
  uint64_t made = 0;
  return entry.runtime().import_physical(request, DriverCall(own), made, os_handle, type);
}

XLOG_EXPORT CUresult cuMemExportToShareableHandle(void* shared, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                                  unsigned long long flags) {
  Entry entry(Row::cuMemExportToShareableHandle);
  CUresult result = entry.forward<decltype(&::cuMemExportToShareableHandle)>(shared, handle, type, flags);
  if (result == CUDA_SUCCESS && entry.serves()) {
    entry.runtime().exported(handle, shared, type);
  }
  return result;
}

XLOG_EXPORT CUresult cuMemMap(CUdeviceptr address, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                              unsigned long long flags) {
  Entry entry(Row::cuMemMap);
  CUresult result = entry.forward<decltype(&::cuMemMap)>(address, size, offset, handle, flags);
  if (result == CUDA_SUCCESS && entry.serves()) {
    entry.runtime().mapped(address, size, handle, XLOG_CALLER);
  }
  return result;
}

XLOG_EXPORT CUresult cuMemUnmap(CUdeviceptr address, size_t size) {
  Entry entry(Row::cuMemUnmap);
  auto call = [&](uint64_t&) noexcept { return entry.forward<decltype(&::cuMemUnmap)>(address, size); };
  uint64_t unused = 0;
  FreeRequest request{.caller = XLOG_CALLER, .api = "cuMemUnmap"};
  return entry.serves() ? entry.runtime().unmap(address, size, request, DriverCall(call)) : call(unused);
}

XLOG_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  Entry entry(Row::cuMemRelease);
  auto call = [&](uint64_t&) noexcept { return entry.forward<decltype(&::cuMemRelease)>(handle); };
  uint64_t unused = 0;
  FreeRequest request{.caller = XLOG_CALLER, .api = "cuMemRelease"};
  return entry.serves() ? entry.runtime().release_physical(handle, request, DriverCall(call)) : call(unused);
}

XLOG_EXPORT CUresult cuMemAllocManaged(CUdeviceptr* dptr, size_t bytes, unsigned flags) {
  Entry entry(Row::cuMemAllocManaged);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuMemAllocManaged)>(dptr, bytes, flags); };
  if (entry.refused()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  bool plausible = flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST;
  if (!entry.serves() || dptr == nullptr || bytes == 0 || !plausible) {
    return call();
  }
  CUdeviceptr none = 0;
  auto judge = [&](uint64_t&) noexcept { return entry.forward<decltype(&::cuMemAllocManaged)>(&none, xlog::kNeverServed, flags); };
  DriverCall judging(judge);
  AllocationRequest request{.bytes = bytes,
                            .caller = XLOG_CALLER,
                            .kind = Kind::managed,
                            .api = "cuMemAllocManaged",
                            .device = entry.runtime().current_device(),
                            .never = &judging};
  bool asked = false;
  auto own = [&](uint64_t& made) noexcept {
    asked = true;
    CUresult result = call();
    made = *dptr;
    return result;
  };
  uint64_t made = 0;
  CUresult result = entry.runtime().account(request, DriverCall(own), made);
  *dptr = asked ? *dptr : 0;
  return result;
}

}  // extern "C"
