// Asks for the 32-bit cuMemAlloc of the first drivers, which is not covered, twice; and for one that is.
#include <dlfcn.h>

#include "programs/program.h"

int main() {
  start();
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  void* old = nullptr;
  MUST(cuGetProcAddress_v2("cuMemAlloc", &old, 2000, 0, nullptr));
  bool found = dlsym(driver, "cuMemAlloc") != nullptr && dlsym(driver, "cuMemAlloc_v2") != nullptr;
  MUST(cuMemFree_v2(must_alloc(1)));
  return found && old != nullptr ? 0 : 1;
}
