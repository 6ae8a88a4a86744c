// Accounted calls: memory of other processes and of other APIs, which is logged and never charged.
#include "shim/entry.h"

using xlog::AllocationRequest;
using xlog::DriverCall;
using xlog::Entry;
using xlog::FreeRequest;
using xlog::Kind;
using xlog::Row;

namespace {

template <class Handle, class Call>
CUresult open(Entry& entry, Handle* out, size_t bytes, const void* caller, std::string_view api, Call call) noexcept {
  if (!entry.serves() || out == nullptr) {
    return call();
  }
  AllocationRequest request{.bytes = bytes, .caller = caller, .kind = Kind::import, .api = api};
  auto own = xlog::making(out, call);
  uint64_t made = 0;
  return entry.runtime().open_import(request, DriverCall(own), made);
}

template <class Call>
CUresult close(Entry& entry, uint64_t made, const void* caller, std::string_view api, Call call) noexcept {
  FreeRequest request{.caller = caller, .api = api};
  auto own = [&](uint64_t&) noexcept { return call(); };
  return entry.serves() ? entry.runtime().close_import(made, request, DriverCall(own)) : call();
}

}  // namespace

extern "C" {

#define XLOG_IPC_OPEN(name)                                                                                        \
  XLOG_EXPORT CUresult name(CUdeviceptr* dptr, CUipcMemHandle handle, unsigned flags) {                            \
    Entry entry(Row::name);                                                                                        \
    auto call = [&]() noexcept { return entry.forward<decltype(&::cuIpcOpenMemHandle_v2)>(dptr, handle, flags); }; \
    return open(entry, dptr, 0, XLOG_CALLER, #name, call);                                                         \
  }
XLOG_IPC_OPEN(cuIpcOpenMemHandle)
XLOG_IPC_OPEN(cuIpcOpenMemHandle_v2)

XLOG_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr dptr) {
  Entry entry(Row::cuIpcCloseMemHandle);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuIpcCloseMemHandle)>(dptr); };
  return close(entry, dptr, XLOG_CALLER, "cuIpcCloseMemHandle", call);
}

XLOG_EXPORT CUresult cuImportExternalMemory(CUexternalMemory* memory, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
  Entry entry(Row::cuImportExternalMemory);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuImportExternalMemory)>(memory, description); };
  return open(entry, memory, description != nullptr ? description->size : 0, XLOG_CALLER, "cuImportExternalMemory", call);
}

XLOG_EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  Entry entry(Row::cuDestroyExternalMemory);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuDestroyExternalMemory)>(memory); };
  return close(entry, reinterpret_cast<uint64_t>(memory), XLOG_CALLER, "cuDestroyExternalMemory", call);
}

// A pointer that cuMemFree and cuMemFreeAsync end.
XLOG_EXPORT CUresult cuMemPoolImportPointer(CUdeviceptr* dptr, CUmemoryPool pool, CUmemPoolPtrExportData* data) {
  Entry entry(Row::cuMemPoolImportPointer);
  auto call = [&]() noexcept { return entry.forward<decltype(&::cuMemPoolImportPointer)>(dptr, pool, data); };
  if (!entry.serves() || dptr == nullptr) {
    return call();
  }
  AllocationRequest request{.caller = XLOG_CALLER, .kind = Kind::import, .api = "cuMemPoolImportPointer"};
  auto own = xlog::making(dptr, call);
  uint64_t made = 0;
  return entry.runtime().account(request, DriverCall(own), made);
}

}  // extern "C"
