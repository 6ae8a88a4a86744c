// What the driver says of a block that was freed, how much memory that leaves, and of rows that end inside a block.
#include "programs/program.h"

namespace {

void show(const char* what, CUresult r) {
  std::printf("%s: %d\n", what, r);
  std::fflush(stdout);
}

size_t left() {
  size_t free = 0;
  size_t total = 0;
  MUST(cuMemGetInfo_v2(&free, &total));
  return free;
}

}  // namespace

int main() {
  start();
  CUdeviceptr other = must_alloc(1 << 20);
  size_t before = left();
  CUdeviceptr p = must_alloc(40 << 20);
  show("free", cuMemFree_v2(p));
  std::printf("all of it is free again: %d\n", left() == before);
  char host[64] = {};
  show("copy to it", cuMemcpyHtoD_v2(p, host, 64));
  show("copy from it", cuMemcpyDtoH_v2(host, p, 64));
  show("copy from it to another", cuMemcpyDtoD_v2(other, p, 64));
  show("set", cuMemsetD8_v2(p, 0, 64));
  show("none of it", cuMemsetD8_v2(p, 0, 0));
  CUdeviceptr base = 7;
  size_t size = 7;
  CUresult r = cuMemGetAddressRange_v2(&base, &size, p + 100);
  std::printf("range: %d, %llu %zu\n", r, base, size);
  unsigned type = 77;
  r = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p);
  std::printf("type: %d %u\n", r, type);
  CUpointer_attribute wanted = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  void* value = &type;
  r = cuPointerGetAttributes(1, &wanted, &value, p);
  std::printf("types: %d %u\n", r, type);
  size_t pitch = 0;
  MUST(cuMemAllocPitch_v2(&p, &pitch, 1000, 3, 4));
  show("columns 100 to 1000 of all rows", cuMemsetD2D8_v2(p + 100, pitch, 0, 900, 3));
  show("a row more", cuMemsetD2D8_v2(p + 100, pitch, 0, 900, 4));
  show("free", cuMemFree_v2(p));
  return 0;
}
