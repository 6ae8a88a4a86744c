#include "programs/program.h"
// The same layout as allocates_a, another name: loaded at the address that the other had, one must not be taken for it.
extern "C" __attribute__((noinline)) CUdeviceptr allocate_in_plugin_b() {
  CUdeviceptr p = 0;
  cuMemAlloc_v2(&p, 2222);
  return p;
}
extern "C" CUdeviceptr run() { return allocate_in_plugin_b() + 0; }
