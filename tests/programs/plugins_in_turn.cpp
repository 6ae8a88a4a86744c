// plugins_in_turn PLUGIN-FOLDER: one plugin allocates and is unloaded, another is loaded where it was and allocates.
#include <dlfcn.h>

#include <string>

#include "programs/program.h"

int main(int, char** argv) {
  start();
  for (int i = 0; i < 6; ++i) {
    std::string path = std::string(argv[1]) + (i % 2 == 0 ? "/allocates_a.so" : "/allocates_b.so");
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      std::printf("%s\n", dlerror());
      return 1;
    }
    auto run = reinterpret_cast<CUdeviceptr (*)()>(dlsym(handle, "run"));
    CUdeviceptr p = run();
    std::printf("%d\n", p != 0);
    dlclose(handle);
    cuMemFree_v2(p);
  }
  return 0;
}
