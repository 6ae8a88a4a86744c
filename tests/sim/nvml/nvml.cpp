// A libnvidia-ml.so.1 for the simulated driver: it numbers the GPUs backwards, and counts the driver's own reserve.
#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "shim/nvml_types.h"

#define NVML_EXPORT extern "C" __attribute__((visibility("default")))

namespace {

constexpr unsigned long long kReserve = 600ULL << 20;
constexpr nvmlReturn_t kInvalidArgument = 2;
constexpr nvmlReturn_t kNotFound = 6;
constexpr nvmlReturn_t kInsufficientSize = 7;
constexpr nvmlReturn_t kVersionMismatch = 25;

int count() {
  const char* text = std::getenv("XLOG_SIM_DEVICES");
  return text != nullptr ? std::atoi(text) : 1;
}
int physical_of(nvmlDevice_t device) { return static_cast<int>(reinterpret_cast<intptr_t>(device)) - 1; }

// Of the whole GPU, where the driver is loaded and shows it.
void read(int physical, unsigned long long& total, unsigned long long& used) {
  const char* memory = std::getenv("XLOG_SIM_MEMORY");
  total = memory != nullptr ? std::strtoull(memory, nullptr, 10) : 80ULL << 30;
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  auto used_by = driver != nullptr ? reinterpret_cast<size_t (*)(int)>(dlsym(driver, "xlog_sim_used_physical")) : nullptr;
  used = used_by != nullptr ? used_by(physical) : 0;
}

}  // namespace

NVML_EXPORT nvmlReturn_t nvmlInit_v2() { return 0; }
NVML_EXPORT nvmlReturn_t nvmlShutdown() { return 0; }
NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* out);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* out, unsigned size);
NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char* uuid, nvmlDevice_t* out) {
  for (unsigned i = 0; i < static_cast<unsigned>(count()); ++i) {
    char text[64];
    nvmlDeviceGetHandleByIndex_v2(i, out);
    nvmlDeviceGetUUID(*out, text, sizeof text);
    if (std::strcmp(text, uuid) == 0) {
      return 0;
    }
  }
  return kNotFound;
}
// XLOG_SIM_PROCESSES is "pid:bytes pid:bytes"; `self` stands for the caller's pid, as where no container is between.
NVML_EXPORT nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t, unsigned* inout, nvmlProcessInfo_t* list) {
  const char* at = std::getenv("XLOG_SIM_PROCESSES");
  unsigned room = *inout;
  *inout = 0;
  while (at != nullptr && *at != '\0') {
    bool self = std::strncmp(at, "self", 4) == 0;
    unsigned pid = self ? static_cast<unsigned>(getpid()) : static_cast<unsigned>(std::strtoul(at, nullptr, 10));
    at = std::strchr(at, ':');
    char* end = nullptr;
    unsigned long long bytes = at != nullptr ? std::strtoull(at + 1, &end, 10) : 0;
    if (*inout < room) {
      list[*inout] = {.pid = pid, .usedGpuMemory = bytes, .gpuInstanceId = ~0U, .computeInstanceId = ~0U};
    }
    ++*inout;
    at = end != nullptr && *end == ' ' ? end + 1 : nullptr;
  }
  return *inout > room ? kInsufficientSize : 0;
}
NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* out) {
  *out = static_cast<unsigned>(count());
  return 0;
}
NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* out) {
  *out = reinterpret_cast<nvmlDevice_t>(static_cast<intptr_t>(count()) - static_cast<intptr_t>(index));
  return index < static_cast<unsigned>(count()) ? 0 : kInvalidArgument;
}
NVML_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* out, unsigned size) {
  char text[64] = "GPU-";
  for (int i = 0; i < 16; ++i) {
    size_t at = std::strlen(text);
    const char* dash = i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "";
    std::snprintf(text + at, sizeof text - at, "%s%02x", dash, 0x10 * (physical_of(device) + 1) + i);
  }
  std::snprintf(out, size, "%s", text);
  return 0;
}
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  if (device == nullptr || memory == nullptr) {
    return kInvalidArgument;
  }
  unsigned long long total = 0;
  unsigned long long used = 0;
  read(physical_of(device), total, used);
  *memory = {.total = total + kReserve, .free = total - used, .used = used + kReserve};
  return 0;
}
NVML_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory) {
  if (device == nullptr || memory == nullptr) {
    return kInvalidArgument;
  }
  if (memory->version != (sizeof *memory | 2U << 24)) {
    return kVersionMismatch;
  }
  unsigned long long total = 0;
  unsigned long long used = 0;
  read(physical_of(device), total, used);
  memory->total = total + kReserve;
  memory->reserved = kReserve;
  memory->free = total - used;
  memory->used = used;
  return 0;
}
