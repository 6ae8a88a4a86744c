// Accounted calls: pinned host memory, which is no GPU's.
#include "shim/entry.h"

using xlog::AllocationRequest;
using xlog::DriverCall;
using xlog::Entry;
using xlog::FreeRequest;
using xlog::Kind;
using xlog::Row;

namespace {

// `ask(out, bytes)` is the driver's call.
template <class Ask>
CUresult allocate(Entry& entry, void** out, size_t bytes, const void* caller, std::string_view api, Ask ask) noexcept {
  auto call = [&]() noexcept { return ask(out, bytes); };
  if (entry.refused()) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (!entry.serves() || out == nullptr || bytes == 0) {
    return call();
  }
  void* none = nullptr;
  auto judge = [&](uint64_t&) noexcept { return ask(&none, xlog::kNeverServed); };
  DriverCall judging(judge);
  AllocationRequest request{.bytes = bytes, .caller = caller, .kind = Kind::host, .api = api, .never = &judging};
  bool asked = false;
  auto own = [&](uint64_t& made) noexcept {
    asked = true;
    CUresult result = call();
    made = reinterpret_cast<uint64_t>(*out);
    return result;
  };
  uint64_t made = 0;
  CUresult result = entry.runtime().account(request, DriverCall(own), made);
  *out = asked ? *out : nullptr;
  return result;
}

}  // namespace

extern "C" {

XLOG_EXPORT CUresult cuMemAllocHost_v2(void** out, size_t bytes) {
  Entry entry(Row::cuMemAllocHost_v2);
  auto ask = [&](void** at, size_t much) noexcept { return entry.forward<decltype(&::cuMemAllocHost_v2)>(at, much); };
  return allocate(entry, out, bytes, XLOG_CALLER, "cuMemAllocHost_v2", ask);
}

XLOG_EXPORT CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned flags) {
  Entry entry(Row::cuMemHostAlloc);
  auto ask = [&](void** at, size_t much) noexcept { return entry.forward<decltype(&::cuMemHostAlloc)>(at, much, flags); };
  return allocate(entry, out, bytes, XLOG_CALLER, "cuMemHostAlloc", ask);
}

// The program's own memory, pinned from now on. Whether a part of it is registered already, only the driver knows, and only
// of the whole range: where the limit refuses, the call is made and taken back.
#define XLOG_HOST_REGISTER(name)                                                                                           \
  XLOG_EXPORT CUresult name(void* address, size_t bytes, unsigned flags) {                                                 \
    Entry entry(Row::name);                                                                                                \
    auto call = [&]() noexcept { return entry.forward<decltype(&::cuMemHostRegister_v2)>(address, bytes, flags); };        \
    if (entry.refused()) {                                                                                                 \
      return CUDA_ERROR_INVALID_VALUE;                                                                                     \
    }                                                                                                                      \
    if (!entry.serves() || address == nullptr || bytes == 0) {                                                             \
      return call();                                                                                                       \
    }                                                                                                                      \
    auto judge = [&](uint64_t&) noexcept {                                                                                 \
      CUresult result = call();                                                                                            \
      if (result == CUDA_SUCCESS) {                                                                                        \
        entry.runtime().unregister(address);                                                                               \
      }                                                                                                                    \
      return result;                                                                                                       \
    };                                                                                                                     \
    DriverCall judging(judge);                                                                                             \
    AllocationRequest request{.bytes = bytes, .caller = XLOG_CALLER, .kind = Kind::host, .api = #name, .never = &judging}; \
    auto own = [&](uint64_t& made) noexcept {                                                                              \
      made = reinterpret_cast<uint64_t>(address);                                                                          \
      return call();                                                                                                       \
    };                                                                                                                     \
    uint64_t made = 0;                                                                                                     \
    return entry.runtime().account(request, DriverCall(own), made);                                                        \
  }
XLOG_HOST_REGISTER(cuMemHostRegister)
XLOG_HOST_REGISTER(cuMemHostRegister_v2)

#define XLOG_HOST_END(name)                                                                                        \
  XLOG_EXPORT CUresult name(void* address) {                                                                       \
    Entry entry(Row::name);                                                                                        \
    auto call = [&](uint64_t&) noexcept { return entry.forward<decltype(&::name)>(address); };                     \
    auto key = reinterpret_cast<uint64_t>(address);                                                                \
    FreeRequest request{.caller = XLOG_CALLER, .api = #name};                                                      \
    return entry.serves() ? entry.runtime().end_accounted(key, Kind::host, request, DriverCall(call)) : call(key); \
  }
XLOG_HOST_END(cuMemFreeHost)
XLOG_HOST_END(cuMemHostUnregister)

}  // extern "C"
