#include "runtime/library/driver_loader.h"

#include <dlfcn.h>

#include <mutex>

#include "runtime/base/driver_api.h"

namespace xlog {

namespace {

bool fill(void* library, DriverApi& api) noexcept {
#define XLOG_DRIVER_CALL(name) api.name = reinterpret_cast<name##_t>(dlsym(library, #name));
#include "runtime/base/driver_calls.def"
#undef XLOG_DRIVER_CALL
  return api.cuInit != nullptr && api.cuDevicePrimaryCtxRetain != nullptr && api.cuDevicePrimaryCtxRelease_v2 != nullptr &&
         api.cuCtxGetCurrent != nullptr && api.cuCtxPushCurrent_v2 != nullptr && api.cuCtxPopCurrent_v2 != nullptr &&
         api.cuDeviceGetAttribute != nullptr && api.cuMemAlloc_v2 != nullptr && api.cuMemFree_v2 != nullptr &&
         api.cuStreamCreate != nullptr && api.cuStreamDestroy_v2 != nullptr && api.cuStreamWaitEvent != nullptr &&
         api.cuEventCreate != nullptr && api.cuEventRecord != nullptr && api.cuEventQuery != nullptr && api.cuEventDestroy_v2 != nullptr;
}

}  // namespace

const DriverApi* load_driver(const char** reason) noexcept {
  static std::mutex lock;
  static DriverApi api;
  static bool loaded = false;
  std::lock_guard<std::mutex> guard(lock);
  const char* why = "";
  if (!loaded) {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    loaded = library != nullptr && fill(library, api);
    why = library == nullptr ? "libcuda.so.1 was not found" : "libcuda.so.1 is older than CUDA 11.2";
    if (!loaded && library != nullptr) {
      dlclose(library);
    }
  }
  if (reason != nullptr) {
    *reason = loaded ? "" : why;
  }
  return loaded ? &api : nullptr;
}

}  // namespace xlog
