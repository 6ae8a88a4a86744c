// What NVML says of each GPU, beside what cuMemGetInfo says of the one with the same UUID: before cuInit and after it.
#include <dlfcn.h>

#include <string>

#include "programs/program.h"
#include "shim/nvml_types.h"

namespace {

template <class Call>
Call find(void* library, const char* name) {
  auto call = reinterpret_cast<Call>(dlsym(library, name));
  if (call == nullptr) {
    std::printf("no %s\n", name);
    std::exit(3);
  }
  return call;
}

std::string uuid_of(CUdevice device) {
  CUuuid uuid{};
  MUST(cuDeviceGetUuid_v2(&uuid, device));
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    char two[4];
    std::snprintf(two, sizeof two, "%02x", static_cast<unsigned char>(uuid.bytes[i]));
    text += (i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "") + std::string(two);
  }
  return text;
}

}  // namespace

int main() {
  void* nvml = dlopen("libnvidia-ml.so.1", RTLD_LAZY);
  if (nvml == nullptr) {
    std::printf("no NVML\n");
    return 3;
  }
  auto init = find<nvmlReturn_t (*)()>(nvml, "nvmlInit_v2");
  auto count = find<nvmlReturn_t (*)(unsigned*)>(nvml, "nvmlDeviceGetCount_v2");
  auto by_index = find<nvmlReturn_t (*)(unsigned, nvmlDevice_t*)>(nvml, "nvmlDeviceGetHandleByIndex_v2");
  auto uuid = find<nvmlReturn_t (*)(nvmlDevice_t, char*, unsigned)>(nvml, "nvmlDeviceGetUUID");
  auto info = find<nvmlReturn_t (*)(nvmlDevice_t, nvmlMemory_t*)>(nvml, "nvmlDeviceGetMemoryInfo");
  auto info_v2 = find<nvmlReturn_t (*)(nvmlDevice_t, nvmlMemory_v2_t*)>(nvml, "nvmlDeviceGetMemoryInfo_v2");
  unsigned n = 0;
  init();
  count(&n);
  std::printf("GPUs %u\n", n);
  nvmlDevice_t first = nullptr;
  nvmlMemory_t before{};
  by_index(0, &first);
  nvmlReturn_t answer = info(first, &before);
  std::printf("before cuInit: %d, whole GPU %d\n", answer, before.total > (size_t{4} << 30));
  start();
  int devices = 0;
  MUST(cuDeviceGetCount(&devices));
  CUdeviceptr p = must_alloc(size_t{100} << 20);
  for (unsigned i = 0; i < n; ++i) {
    nvmlDevice_t device = nullptr;
    char name[96] = {};
    nvmlMemory_t one{};
    nvmlMemory_v2_t two{};
    two.version = static_cast<unsigned>(sizeof two) | 2U << 24;
    by_index(i, &device);
    uuid(device, name, sizeof name);
    int ordinal = -1;
    for (int k = 0; k < devices; ++k) {
      ordinal = uuid_of(k) == name ? k : ordinal;
    }
    std::printf("ordinal %d: v1 %d, v2 %d", ordinal, info(device, &one), info_v2(device, &two));
    size_t free = 0;
    size_t total = 0;
    if (ordinal == 0) {
      MUST(cuMemGetInfo_v2(&free, &total));
      std::printf(", as cuMemGetInfo: total %d %d free %d %d", one.total == total, two.total == total, one.free == free, two.free == free);
    } else {
      std::printf(", total %llu MiB", (two.total - two.reserved) >> 20);
    }
    std::printf(", adds up %d %d\n", one.used + one.free == one.total, two.used + two.free + two.reserved == two.total);
  }
  {
    nvmlMemory_v2_t two{};
    std::printf("bad version refused: %d, no memory refused: %d\n", info_v2(first, &two) != 0, info(first, nullptr) != 0);
  }
  MUST(cuMemFree_v2(p));
  return 0;
}
