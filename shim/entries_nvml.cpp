// NVML's view of a GPU's memory, as it is under a limit: programs size themselves by it as by cuMemGetInfo.
#include <string_view>

#include "shim/elf_symbols.h"
#include "shim/entry.h"
#include "shim/nvml_types.h"

using xlog::Entry;
using xlog::Row;

namespace {

constexpr nvmlReturn_t kSuccess = 0;
constexpr nvmlReturn_t kUninitialized = 1;

// The UUID by the same library that the call goes to.
bool limited(Entry& entry, Row row, nvmlDevice_t device, uint64_t& free, uint64_t& total) noexcept {
  using GetUuid = nvmlReturn_t (*)(nvmlDevice_t, char*, unsigned);
  if (!entry.serves() || !entry.runtime().options().nvml || entry.runtime().options().budget.count == 0) {
    return false;
  }
  auto get_uuid = reinterpret_cast<GetUuid>(xlog::file_of(xlog::real_of(row)).find("nvmlDeviceGetUUID"));
  char uuid[96] = {};
  return get_uuid != nullptr && get_uuid(device, uuid, sizeof uuid) == kSuccess && entry.runtime().limited_memory(uuid, free, total);
}

// NVML's answer as it is; that it is not initialised when there is no NVML to ask.
template <class Call, class Memory>
nvmlReturn_t ask(Entry& entry, Row row, nvmlDevice_t device, Memory* memory) noexcept {
  return xlog::real_of(row) != nullptr ? static_cast<nvmlReturn_t>(entry.forward<Call>(device, memory)) : kUninitialized;
}

}  // namespace

extern "C" {

XLOG_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  Entry entry(Row::nvmlDeviceGetMemoryInfo);
  auto result = ask<CUresult (*)(nvmlDevice_t, nvmlMemory_t*)>(entry, Row::nvmlDeviceGetMemoryInfo, device, memory);
  uint64_t free = 0;
  uint64_t total = 0;
  if (result == kSuccess) {
    free = memory->free;
    total = memory->total;
  }
  if (result == kSuccess && limited(entry, Row::nvmlDeviceGetMemoryInfo, device, free, total)) {
    *memory = {.total = total, .free = free, .used = total - free};
  }
  return result;
}

XLOG_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  Entry entry(Row::nvmlDeviceGetMemoryInfo_v2);
  auto result = ask<CUresult (*)(nvmlDevice_t, nvmlMemory_v2_t*)>(entry, Row::nvmlDeviceGetMemoryInfo_v2, device, memory);
  uint64_t free = 0;
  uint64_t total = 0;
  if (result == kSuccess) {
    free = memory->free;
    total = memory->total;
  }
  if (result == kSuccess && limited(entry, Row::nvmlDeviceGetMemoryInfo_v2, device, free, total)) {
    // The driver's own reserve is not part of what a limit leaves, nor of what cuMemGetInfo calls total.
    memory->total = total;
    memory->reserved = 0;
    memory->free = free;
    memory->used = total - free;
  }
  return result;
}

}  // extern "C"
