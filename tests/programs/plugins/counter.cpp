// Another interposer, as a profiler would be: counts what passes through it, and hands it on to the next.
#include <dlfcn.h>

#include <cstdio>

#include "programs/program.h"

namespace {
int seen = 0;
struct Report {
  ~Report() { std::fprintf(stderr, "counter: %d\n", seen); }
} report;
}  // namespace

extern "C" CUresult cuMemAlloc_v2(CUdeviceptr* p, size_t bytes) {
  static auto next = reinterpret_cast<decltype(&cuMemAlloc_v2)>(dlsym(RTLD_NEXT, "cuMemAlloc_v2"));
  ++seen;
  return next(p, bytes);
}
