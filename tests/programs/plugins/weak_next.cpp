#include <dlfcn.h>

extern "C" __attribute__((weak)) int f() { return 1; }
extern "C" int call_next_f() {
  auto next = reinterpret_cast<int (*)()>(dlsym(RTLD_NEXT, "f"));
  return next == nullptr ? f() : 10 + next();
}
