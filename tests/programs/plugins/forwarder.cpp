// A library that exports the driver's name and forwards to what dlsym gives it, as some frameworks' stubs do: with the
// library in front, that is the library's own entry again.
#include <dlfcn.h>

#include "programs/program.h"

extern "C" CUresult cuMemAlloc_v2(CUdeviceptr* p, size_t bytes) {
  static auto next = reinterpret_cast<decltype(&cuMemAlloc_v2)>(dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL), "cuMemAlloc_v2"));
  return next(p, bytes);
}
