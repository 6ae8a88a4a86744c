#include <dlfcn.h>

extern "C" int cuDriverGetVersion(int*);
extern "C" int finds_driver() {
  int version = 0;
  cuDriverGetVersion(&version);
  return version == 13000 && dlsym(RTLD_DEFAULT, "cuMemAlloc_v2") != nullptr ? 1 : 0;
}
