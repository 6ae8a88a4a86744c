// Accounted calls of the first drivers (before CUDA 3.2), with 32-bit sizes and addresses. They work in contexts that the
// first cuCtxCreate made, and in no other (measured).
#include "shim/entry.h"

using xlog::AllocationRequest;
using xlog::DriverCall;
using xlog::Entry;
using xlog::FreeRequest;
using xlog::Kind;
using xlog::Row;

namespace {

template <class Out, class Call>
CUresult make(Entry& entry, Kind kind, Out* out, uint64_t bytes, const void* caller, std::string_view api, Call call) noexcept {
  if (entry.refused()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!entry.serves() || out == nullptr || bytes == 0) {
    return call();
  }
  AllocationRequest request{.bytes = bytes, .caller = caller, .kind = kind, .api = api, .device = entry.runtime().current_device()};
  auto own = xlog::making(out, call);
  uint64_t made = 0;
  return entry.runtime().account(request, DriverCall(own), made);
}

// What its elements take: the driver tells the requirements of newer arrays only.
uint64_t elements(uint64_t width, uint64_t height, uint64_t depth, CUarray_format format, unsigned channels) noexcept {
  uint64_t bytes = format == CU_AD_FORMAT_UNSIGNED_INT8 || format == CU_AD_FORMAT_SIGNED_INT8                                     ? 1
                   : format == CU_AD_FORMAT_UNSIGNED_INT32 || format == CU_AD_FORMAT_SIGNED_INT32 || format == CU_AD_FORMAT_FLOAT ? 4
                                                                                                                                  : 2;
  return width * (height != 0 ? height : 1) * (depth != 0 ? depth : 1) * bytes * channels;
}

// As much of it as 32 bits hold.
unsigned capped(uint64_t bytes) noexcept { return bytes < UINT32_MAX ? static_cast<unsigned>(bytes) : UINT32_MAX; }

}  // namespace

extern "C" {

XLOG_EXPORT CUresult cuMemAlloc(CUdeviceptr_v1* dptr, unsigned bytes) {
  Entry entry(Row::cuMemAlloc);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuMemAlloc)>(dptr, bytes); };
  return make(entry, Kind::plain, dptr, bytes, XLOG_CALLER, "cuMemAlloc", call);
}

// Counted as asked for: its pitch is known only afterwards.
XLOG_EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1* dptr, unsigned* pitch, unsigned width, unsigned height, unsigned element) {
  Entry entry(Row::cuMemAllocPitch);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuMemAllocPitch)>(dptr, pitch, width, height, element); };
  return make(entry, Kind::plain, dptr, uint64_t{width} * height, XLOG_CALLER, "cuMemAllocPitch", call);
}

XLOG_EXPORT CUresult cuMemFree(CUdeviceptr_v1 dptr) {
  Entry entry(Row::cuMemFree);
  auto call = [&](uint64_t&) noexcept { return entry.forward<decltype(&::cuMemFree)>(dptr); };
  uint64_t unused = 0;
  FreeRequest request{.caller = XLOG_CALLER, .api = "cuMemFree"};
  return entry.serves() ? entry.runtime().end_accounted(dptr, Kind::plain, request, DriverCall(call)) : call(unused);
}

XLOG_EXPORT CUresult cuMemAllocHost(void** out, unsigned bytes) {
  Entry entry(Row::cuMemAllocHost);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuMemAllocHost)>(out, bytes); };
  return make(entry, Kind::host, out, bytes, XLOG_CALLER, "cuMemAllocHost", call);
}

XLOG_EXPORT CUresult cuArrayCreate(CUarray* array, const CUDA_ARRAY_DESCRIPTOR_v1* d) {
  Entry entry(Row::cuArrayCreate);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuArrayCreate)>(array, d); };
  uint64_t bytes = d != nullptr ? elements(d->Width, d->Height, 1, d->Format, d->NumChannels) : 0;
  return make(entry, Kind::array, array, bytes, XLOG_CALLER, "cuArrayCreate", call);
}

XLOG_EXPORT CUresult cuArray3DCreate(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR_v1* d) {
  Entry entry(Row::cuArray3DCreate);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuArray3DCreate)>(array, d); };
  uint64_t bytes = d != nullptr ? elements(d->Width, d->Height, d->Depth, d->Format, d->NumChannels) : 0;
  return make(entry, Kind::array, array, bytes, XLOG_CALLER, "cuArray3DCreate", call);
}

XLOG_EXPORT CUresult cuMemGetInfo(unsigned* free, unsigned* total) {
  Entry entry(Row::cuMemGetInfo);
  unsigned real_free = 0;
  unsigned real_total = 0;
  CUresult result = entry.forward<decltype(&::cuMemGetInfo)>(&real_free, &real_total);
  if (result != CUDA_SUCCESS) {
    return entry.forward<decltype(&::cuMemGetInfo)>(free, total);
  }
  uint64_t limit = UINT64_MAX;
  uint64_t remaining = UINT64_MAX;
  if (entry.serves()) {
    entry.runtime().limit_here(limit, remaining);
  }
  if (total != nullptr) {
    *total = capped(limit) < real_total ? capped(limit) : real_total;
  }
  if (free != nullptr) {
    *free = capped(remaining) < real_free ? capped(remaining) : real_free;
  }
  return result;
}

XLOG_EXPORT CUresult cuDeviceTotalMem(unsigned* bytes, CUdevice device) {
  Entry entry(Row::cuDeviceTotalMem);
  CUresult result = entry.forward<decltype(&::cuDeviceTotalMem)>(bytes, device);
  size_t whole = 0;
  if (result == CUDA_SUCCESS && bytes != nullptr && entry.serves() && entry.runtime().total_memory(&whole, device) == CUDA_SUCCESS) {
    *bytes = capped(whole) < *bytes ? capped(whole) : *bytes;
  }
  return result;
}

}  // extern "C"
