// The GPUs: which this process sees, and what they say of themselves.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tests/sim/driver.h"

using namespace sim;

namespace {

std::string uuid_text(int physical) {
  std::string text;
  for (int i = 0; i < 16; ++i) {
    char byte[16];
    snprintf(byte, sizeof byte, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (0x10 * (physical + 1) + i) & 0xff);
    text += byte;
  }
  return text;
}

// CUDA_VISIBLE_DEVICES: indices and UUIDs, whole or shortened, up to the first that is none.
std::vector<int> visible_devices(int count) {
  std::vector<int> all;
  const char* list = std::getenv("CUDA_VISIBLE_DEVICES");
  for (int i = 0; list == nullptr && i < count; ++i) {
    all.push_back(i);
  }
  for (std::string rest = list != nullptr ? list : ""; !rest.empty();) {
    size_t comma = std::min(rest.find(','), rest.size());
    std::string item = rest.substr(0, comma);
    rest.erase(0, comma + 1);
    int found = -1;
    for (int i = 0; i < count; ++i) {
      bool by_uuid = (item.starts_with("GPU-") || item.starts_with("MIG-")) && item.size() > 4 && uuid_text(i).starts_with(item.substr(4));
      found = by_uuid || item == std::to_string(i) ? i : found;
    }
    if (found < 0) {
      break;
    }
    all.push_back(found);
  }
  return all;
}

}  // namespace

SIM_EXPORT CUresult cuInit(unsigned flags) {
  Call call("cuInit", Call::Needs::nothing);
  Driver& driver = Driver::get();
  if (driver.initialised && driver.pid != getpid()) {
    return CUDA_ERROR_NOT_INITIALIZED;
  }
  if (call.failed() || flags != 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  if (driver.initialised) {
    return CUDA_SUCCESS;
  }
  const char* count = std::getenv("XLOG_SIM_DEVICES");
  const char* memory = std::getenv("XLOG_SIM_MEMORY");  // bytes a device
  const char* seed = std::getenv("XLOG_SIM_SEED");
  const char* shut = std::getenv("XLOG_SIM_DEINIT");  // the driver is gone once exit handlers run
  driver.random.seed(seed != nullptr ? static_cast<unsigned>(std::strtoul(seed, nullptr, 10)) : 1);
  const char* at = std::getenv("XLOG_SIM_BASE");  // where devices lie: ThreadSanitizer allows only some of the addresses
  uint64_t base = at != nullptr ? std::strtoull(at, nullptr, 16) : 0x7000'0000'0000ULL;
  int n = count != nullptr ? std::atoi(count) : 1;
  size_t total = memory != nullptr ? std::strtoull(memory, nullptr, 10) : size_t{80} << 30;
  if (n == 0) {
    return CUDA_ERROR_NO_DEVICE;
  }
  std::vector<int> visible = visible_devices(n);
  if (visible.empty()) {
    return CUDA_ERROR_NO_DEVICE;
  }
  for (int i = 0; i < static_cast<int>(visible.size()); ++i) {
    auto device = std::make_unique<Device>();
    device->ordinal = i;
    device->physical = visible[static_cast<size_t>(i)];
    device->total = total;
    device->space.open(base + (static_cast<uint64_t>(i) << 40), total * 2);
    device->standard_pool = std::make_unique<Pool>();
    device->standard_pool->device = device.get();
    device->standard_pool->standard = true;
    device->pool = device->standard_pool.get();
    driver.pools.insert(device->pool);
    driver.devices.push_back(std::move(device));
  }
  driver.pid = getpid();
  driver.initialised = true;
  if (shut != nullptr && *shut == '1') {
    std::atexit([] { Driver::get().shut_down = true; });
  }
  return CUDA_SUCCESS;
}

namespace {
Device* device_at(CUdevice ordinal) {
  Driver& driver = Driver::get();
  return ordinal >= 0 && static_cast<size_t>(ordinal) < driver.devices.size() ? driver.devices[static_cast<size_t>(ordinal)].get()
                                                                              : nullptr;
}
}  // namespace

SIM_EXPORT CUresult cuDeviceGet(CUdevice* out, int ordinal) {
  Call call("cuDeviceGet", Call::Needs::init);
  if (call.failed()) {
    return call.result();
  }
  if (device_at(ordinal) == nullptr) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  *out = ordinal;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGetCount(int* count) {
  Call call("cuDeviceGetCount", Call::Needs::init);
  if (!call.failed()) {
    *count = static_cast<int>(Driver::get().devices.size());
  }
  return call.result();
}

SIM_EXPORT CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  Call call("cuDeviceGetName", Call::Needs::init);
  if (call.failed() || device_at(device) == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_DEVICE;
  }
  snprintf(name, static_cast<size_t>(length), "Simulated GPU");
  return CUDA_SUCCESS;
}

namespace {
CUresult put_uuid(CUuuid* uuid, CUdevice device) {
  if (device_at(device) == nullptr) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  for (int i = 0; i < 16; ++i) {
    uuid->bytes[i] = static_cast<char>(0x10 * (device_at(device)->physical + 1) + i);
  }
  return CUDA_SUCCESS;
}
}  // namespace

SIM_EXPORT CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  Call call("cuDeviceGetUuid", Call::Needs::init);
  return call.failed() ? call.result() : put_uuid(uuid, device);
}

SIM_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  Call call("cuDeviceGetUuid_v2", Call::Needs::init);
  return call.failed() ? call.result() : put_uuid(uuid, device);
}

SIM_EXPORT CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  Call call("cuDeviceGetAttribute", Call::Needs::init);
  if (call.failed() || device_at(device) == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_DEVICE;
  }
  const char* without = std::getenv("XLOG_SIM_NO_POOLS");  // ordinals, or `all`
  bool pools = without == nullptr || (std::strcmp(without, "all") != 0 && std::strchr(without, '0' + device) == nullptr);
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
      *value = pools ? 1 : 0;
      break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
      *value = 9;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  Call call("cuDeviceTotalMem_v2", Call::Needs::init);
  if (call.failed() || bytes == nullptr || device_at(device) == nullptr) {
    return call.failed() ? call.result() : bytes == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
  }
  *bytes = device_at(device)->total;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  Call call("cuDeviceGetDefaultMemPool", Call::Needs::init);
  if (call.failed() || device_at(device) == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_DEVICE;
  }
  *pool = reinterpret_cast<CUmemoryPool>(device_at(device)->standard_pool.get());
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  Call call("cuDeviceGetMemPool", Call::Needs::init);
  if (call.failed() || device_at(device) == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_DEVICE;
  }
  *pool = reinterpret_cast<CUmemoryPool>(device_at(device)->pool);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  Call call("cuDeviceSetMemPool", Call::Needs::init);
  auto* chosen = reinterpret_cast<Pool*>(pool);
  if (call.failed() || device_at(device) == nullptr || !is_known(chosen)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  device_at(device)->pool = chosen;
  return CUDA_SUCCESS;
}
