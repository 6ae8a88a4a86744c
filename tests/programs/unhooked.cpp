// Asks for a function that makes memory and is not covered, by both resolvers; and for one that is. With an argument: for one that
// only the simulated driver has.
#include <dlfcn.h>

#include "programs/program.h"

int main(int argc, char**) {
  start();
  void* driver = dlopen("libcuda.so.1", RTLD_LAZY);
  if (argc > 1) {
    return dlsym(driver, "cuMemAllocOfTheFuture") != nullptr ? 0 : 1;
  }
  void* old = nullptr;
  MUST(cuGetProcAddress_v2("cuMulticastCreate", &old, 13000, 0, nullptr));
  bool found = dlsym(driver, "cuMulticastCreate") != nullptr && dlsym(driver, "cuMemAlloc_v2") != nullptr;
  MUST(cuMemFree_v2(must_alloc(1)));
  return found && old != nullptr ? 0 : 1;
}
