#include "programs/program.h"
// The same layout as allocates_b, another name: loaded at the address that the other had, one must not be taken for it.
extern "C" __attribute__((noinline)) CUdeviceptr allocate_in_plugin_a() {
  CUdeviceptr p = 0;
  cuMemAlloc_v2(&p, 1111);
  return p;
}
extern "C" CUdeviceptr run() { return allocate_in_plugin_a() + 0; }
