// Requests above the limit that the driver would refuse for another reason than memory, each a line: `other_reasons`.
#include <sys/mman.h>

#include "programs/program.h"

namespace {

constexpr size_t kMuch = size_t{1} << 30;  // the card has it, the limit has not
void show(const char* what, CUresult result) { std::printf("%s: %d\n", what, result); }

void capturing(const char* what, CUresult (*allocate)(CUstream beside)) {
  CUstream stream = nullptr;
  CUstream beside = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
  MUST(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
  show(what, allocate(beside));
  CUgraph graph = nullptr;
  show(" the capture's end", cuStreamEndCapture(stream, &graph));
  MUST(cuStreamDestroy_v2(stream));
  MUST(cuStreamDestroy_v2(beside));
}

}  // namespace

int main() {
  start();
  CUdeviceptr block = 0;
  size_t pitch = 0;
  show("plain", cuMemAlloc_v2(&block, kMuch));
  show("pitch, elements of 4 bytes", cuMemAllocPitch_v2(&block, &pitch, kMuch / 4, 4, 4));
  show("pitch, elements of 3 bytes", cuMemAllocPitch_v2(&block, &pitch, kMuch / 4, 4, 3));
  show("no pool", cuMemAllocFromPoolAsync(&block, kMuch, nullptr, nullptr));
  show("managed, bad flags", cuMemAllocManaged(&block, kMuch, 77));
  CUmemGenericAllocationHandle handle = 0;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, {0}};
  show("physical", cuMemCreate(&handle, kMuch, &properties, 0));
  show("physical, no multiple of a granule", cuMemCreate(&handle, kMuch + 4096, &properties, 0));
  show("physical, bad flags", cuMemCreate(&handle, kMuch, &properties, 7));
  properties.location.id = 99;
  show("physical, no such device", cuMemCreate(&handle, kMuch, &properties, 0));
  void* host = nullptr;
  show("host", cuMemHostAlloc(&host, kMuch, 0));
  void* own = mmap(nullptr, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  char* at = static_cast<char*>(own);
  show("4 MiB registered", cuMemHostRegister_v2(at, 4 << 20, 0));
  show("32 MiB over them", cuMemHostRegister_v2(at, 32 << 20, 0));
  show("32 MiB beside them", cuMemHostRegister_v2(at + (16 << 20), 32 << 20, 0));
  show("1 MiB there, which was not left registered", cuMemHostRegister_v2(at + (16 << 20), 1 << 20, 0));
  capturing("plain, beside a capture", [](CUstream) {
    CUdeviceptr p = 0;
    return cuMemAlloc_v2(&p, kMuch);
  });
  capturing("in stream order, beside a capture", [](CUstream beside) {
    CUdeviceptr p = 0;
    return cuMemAllocAsync(&p, kMuch, beside);
  });
  return 0;
}
