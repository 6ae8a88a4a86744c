#include "runtime/devices.h"

#include "runtime/base/ask.h"
#include "runtime/base/driver_api.h"

namespace xlog {

bool Devices::Memory::find(const void* handle, int& device) const noexcept {
  for (const Named& each : entries) {
    if (each.handle == handle) {
      device = each.device;
      return true;
    }
  }
  return false;
}

void Devices::Memory::remove(const void* handle) noexcept {
  for (Named& each : entries) {
    if (each.handle == handle) {
      each = Named{nullptr, 0};
    }
  }
}

void Devices::Memory::add(const void* handle, int device) noexcept {
  remove(handle);
  entries[next] = {handle, device};
  next = (next + 1) % kRemembered;
}

int Devices::count(const DriverApi& driver) noexcept {
  int known = __atomic_load_n(&count_plus_one_, __ATOMIC_RELAXED);
  if (known == 0) {
    int n = 0;
    if (driver.cuDeviceGetCount == nullptr || driver.cuDeviceGetCount(&n) != CUDA_SUCCESS) {
      return 0;
    }
    known = n + 1;
    __atomic_store_n(&count_plus_one_, known, __ATOMIC_RELAXED);
  }
  return known - 1;
}

int Devices::of_current(const DriverApi& driver) noexcept {
  CUdevice device = -1;
  return ask_twice([&] { return driver.cuCtxGetDevice(&device); }) == CUDA_SUCCESS ? device : -1;
}

int Devices::of_context(const DriverApi& driver, CUcontext context) noexcept {
  int device = -1;
  {
    LockGuard guard(lock_);
    if (contexts_.find(context, device)) {
      return device;
    }
  }
  CUcontext popped = nullptr;
  if (context == nullptr || driver.cuCtxPushCurrent_v2(context) != CUDA_SUCCESS) {
    return -1;
  }
  device = of_current(driver);
  ask_twice([&] { return driver.cuCtxPopCurrent_v2(&popped); });
  if (device >= 0) {
    LockGuard guard(lock_);
    contexts_.add(context, device);
  }
  return device;
}

int Devices::of_stream(const DriverApi& driver, const StreamArg& stream) noexcept {
  if (stream.is_legacy() || stream.is_per_thread()) {
    return of_current(driver);
  }
  if (count(driver) == 1) {
    return 0;
  }
  CUdevice named = -1;
  if (driver.cuStreamGetDevice != nullptr) {  // CUDA 13; streams of green contexts too
    return driver.cuStreamGetDevice(stream.handle, &named) == CUDA_SUCCESS ? named : -1;
  }
  if (driver.cuStreamGetCtx == nullptr) {
    return of_current(driver);
  }
  CUcontext context = nullptr;
  return driver.cuStreamGetCtx(stream.handle, &context) == CUDA_SUCCESS ? of_context(driver, context) : -1;
}

int Devices::of_pool(const DriverApi& driver, CUmemoryPool pool) noexcept {
  {
    LockGuard guard(lock_);
    if (PoolDevice* known = pools_.find(reinterpret_cast<uint64_t>(pool)); known != nullptr) {
      return known->device;
    }
  }
  int devices = pool != nullptr && driver.cuDeviceGetDefaultMemPool != nullptr ? count(driver) : 0;
  for (int i = 0; i < devices; ++i) {
    CUmemoryPool its = nullptr;
    if (driver.cuDeviceGetDefaultMemPool(&its, i) == CUDA_SUCCESS && its == pool) {
      pool_created(pool, i);  // it lasts as long as the process
      return i;
    }
  }
  return pool != nullptr ? kUnknown : -1;
}

void Devices::pool_created(CUmemoryPool pool, int device) noexcept {
  LockGuard guard(lock_);
  bool known = false;
  if (PoolDevice* place = pools_.claim(reinterpret_cast<uint64_t>(pool), known); place != nullptr) {
    place->device = device;
  }
}

int Devices::pool_ends(CUmemoryPool pool) noexcept {
  LockGuard guard(lock_);
  PoolDevice* known = pools_.find(reinterpret_cast<uint64_t>(pool));
  int device = known != nullptr ? known->device : kUnknown;
  if (known != nullptr) {
    pools_.erase(known);
  }
  return device;
}

void Devices::context_destroyed(CUcontext context) noexcept {
  LockGuard guard(lock_);
  contexts_.remove(context);
}

bool Devices::current_is_first(const DriverApi& driver) noexcept {
  unsigned version = 0;
  return driver.cuCtxGetApiVersion != nullptr && driver.cuCtxGetApiVersion(nullptr, &version) == CUDA_SUCCESS && version < 3020;
}

}  // namespace xlog
