// Accounted calls: arrays and mipmapped arrays.
#include "shim/entry.h"

using xlog::AllocationRequest;
using xlog::DriverCall;
using xlog::Entry;
using xlog::FreeRequest;
using xlog::Kind;
using xlog::Row;

namespace {

// `Handle`: CUarray or CUmipmappedArray.
template <class Handle, class Call>
CUresult create(Entry& entry, Handle* out, const CUDA_ARRAY3D_DESCRIPTOR* description, unsigned levels, const void* caller,
                std::string_view api, Call call) noexcept {
  if (entry.refused()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  size_t bytes = 0;
  bool known = entry.serves() && out != nullptr && description != nullptr && entry.runtime().array_bytes(*description, levels, bytes);
  if (!known || bytes == 0) {
    return call();  // an argument that the driver refuses, or an array without memory of its own
  }
  AllocationRequest request{.bytes = bytes, .caller = caller, .kind = Kind::array, .api = api, .device = entry.runtime().current_device()};
  auto own = xlog::making(out, call);
  uint64_t made = 0;
  return entry.runtime().account(request, DriverCall(own), made);
}

}  // namespace

extern "C" {

XLOG_EXPORT CUresult cuArrayCreate_v2(CUarray* array, const CUDA_ARRAY_DESCRIPTOR* description) {
  Entry entry(Row::cuArrayCreate_v2);
  CUDA_ARRAY3D_DESCRIPTOR whole{};
  if (description != nullptr) {
    whole = {.Width = description->Width,
             .Height = description->Height,
             .Depth = 0,
             .Format = description->Format,
             .NumChannels = description->NumChannels,
             .Flags = 0};
  }
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuArrayCreate_v2)>(array, description); };
  return create(entry, array, description != nullptr ? &whole : nullptr, 0, XLOG_CALLER, "cuArrayCreate_v2", call);
}

XLOG_EXPORT CUresult cuArray3DCreate_v2(CUarray* array, const CUDA_ARRAY3D_DESCRIPTOR* description) {
  Entry entry(Row::cuArray3DCreate_v2);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuArray3DCreate_v2)>(array, description); };
  return create(entry, array, description, 0, XLOG_CALLER, "cuArray3DCreate_v2", call);
}

XLOG_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray* array, const CUDA_ARRAY3D_DESCRIPTOR* description, unsigned levels) {
  Entry entry(Row::cuMipmappedArrayCreate);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuMipmappedArrayCreate)>(array, description, levels); };
  return levels != 0 ? create(entry, array, description, levels, XLOG_CALLER, "cuMipmappedArrayCreate", call) : call();
}

#define XLOG_ARRAY_DESTROY(name, handle_type)                                                                             \
  XLOG_EXPORT CUresult name(handle_type array) {                                                                          \
    Entry entry(Row::name);                                                                                               \
    auto call = [&](uint64_t&) noexcept { return entry.forward<decltype(&::name)>(array); };                              \
    auto handle = reinterpret_cast<uint64_t>(array);                                                                      \
    FreeRequest request{.caller = XLOG_CALLER, .api = #name};                                                             \
    return entry.serves() ? entry.runtime().end_accounted(handle, Kind::array, request, DriverCall(call)) : call(handle); \
  }
XLOG_ARRAY_DESTROY(cuArrayDestroy, CUarray)
XLOG_ARRAY_DESTROY(cuMipmappedArrayDestroy, CUmipmappedArray)

}  // extern "C"
