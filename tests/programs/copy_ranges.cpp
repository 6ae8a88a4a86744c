// What the driver says of copies and sets over ranges that begin in memory of every sort: mappings that lie side by side, plain,
// pitched and managed memory, arrays, and the host's.
#include <vector>

#include "programs/program.h"

namespace {

constexpr size_t kGranule = 2 << 20;
std::vector<char> host(5 * kGranule, 7);

void show(const char* what, CUresult r) { std::printf("  %s: %d\n", what, r); }

CUdeviceptr map_side_by_side(size_t count) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUdeviceptr at = 0;
  MUST(cuMemAddressReserve(&at, (count + 1) * kGranule, 0, 0, 0));
  for (size_t i = 0; i < count; ++i) {
    CUmemGenericAllocationHandle handle = 0;
    MUST(cuMemCreate(&handle, kGranule, &properties, 0));
    MUST(cuMemMap(at + i * kGranule, kGranule, 0, handle, 0));
    MUST(cuMemRelease(handle));
  }
  CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  MUST(cuMemSetAccess(at, count * kGranule, &access, 1));
  return at;
}

CUresult copy_rows(CUdeviceptr from, size_t pitch, size_t width, size_t height) {
  CUDA_MEMCPY2D plane{};
  plane.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  plane.srcDevice = from;
  plane.srcPitch = pitch;
  plane.dstMemoryType = CU_MEMORYTYPE_HOST;
  plane.dstHost = host.data();
  plane.dstPitch = width;
  plane.WidthInBytes = width;
  plane.Height = height;
  return cuMemcpy2D_v2(&plane);
}

CUresult copy_slices(CUdeviceptr from, size_t pitch, size_t rows, size_t width, size_t height, size_t depth) {
  CUDA_MEMCPY3D space{};
  space.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  space.srcDevice = from;
  space.srcPitch = pitch;
  space.srcHeight = rows;
  space.dstMemoryType = CU_MEMORYTYPE_HOST;
  space.dstHost = host.data();
  space.dstPitch = width;
  space.dstHeight = height;
  space.WidthInBytes = width;
  space.Height = height;
  space.Depth = depth;
  return cuMemcpy3D_v2(&space);
}

void all_ways(const char* what, CUdeviceptr at, size_t n) {
  std::printf("%s\n", what);
  show("to", cuMemcpyHtoD_v2(at, host.data(), n));
  show("to, in a stream", cuMemcpyHtoDAsync_v2(at, host.data(), n, nullptr));
  show("from", cuMemcpyDtoH_v2(host.data(), at, n));
  show("from, in a stream", cuMemcpyDtoHAsync_v2(host.data(), at, n, nullptr));
  show("bytes", cuMemsetD8_v2(at, 1, n));
  show("words", cuMemsetD32Async(at, 1, n / 4, nullptr));
  show("a row", copy_rows(at, n, n, 1));
  show("work", cuCtxSynchronize());
}

void rows_of(const char* what, CUdeviceptr at, size_t bytes) {
  std::printf("%s\n", what);
  constexpr size_t kPitch = 128;
  size_t rows = (bytes + kPitch - 1) / kPitch;
  size_t last = bytes - (rows - 1) * kPitch;
  show("rows whose last one ends with the block", copy_rows(at, kPitch, last, rows));
  show("rows whose last one is a byte too long", copy_rows(at, kPitch, last + 1, rows));
  show("no rows", copy_rows(at, kPitch, last + 1, 0));
  show("rows of no bytes", copy_rows(at, kPitch, 0, rows));
  show("set, ends with the block", cuMemsetD2D8_v2(at, kPitch, 1, last, rows));
  show("set, a byte too long", cuMemsetD2D8_v2(at, kPitch, 1, last + 1, rows));
  show("slices whose last row ends with the block", copy_slices(at, kPitch, rows, last, rows, 1));
  show("two slices of the same rows", copy_slices(at, kPitch, rows, last, rows, 2));
}

}  // namespace

int main() {
  start();
  CUdeviceptr plain = must_alloc(1000);
  CUdeviceptr mapped = map_side_by_side(3);
  all_ways("one mapping", mapped, kGranule);
  all_ways("two mappings", mapped, 2 * kGranule);
  all_ways("three mappings, from within the first", mapped + 1000, 3 * kGranule - 1000);
  all_ways("the edge of two mappings", mapped + kGranule - 8, 16);
  all_ways("over the end of all mappings", mapped + kGranule, 2 * kGranule + 4);
  all_ways("no bytes behind all mappings", mapped + 3 * kGranule, 0);
  std::vector<char> sent(2 * kGranule, 5);
  std::vector<char> got(2 * kGranule);
  MUST(cuMemcpyHtoD_v2(mapped + kGranule / 2, sent.data(), sent.size()));
  MUST(cuMemcpyDtoH_v2(got.data(), mapped + kGranule / 2, got.size()));
  std::printf("the bytes came over the edges: %d\n", sent == got);
  show("from mappings into a block", cuMemcpyDtoD_v2(plain, mapped + kGranule - 500, 1000));
  show("one byte too many", cuMemcpyDtoD_v2(plain, mapped + kGranule - 500, 1001));
  rows_of("plain memory", plain, 1000);
  CUdeviceptr ordered = 0;
  MUST(cuMemAllocAsync(&ordered, 1000, nullptr));
  MUST(cuStreamSynchronize(nullptr));
  rows_of("memory of a pool", ordered, 1000);
  CUdeviceptr managed = 0;
  MUST(cuMemAllocManaged(&managed, 1000, CU_MEM_ATTACH_GLOBAL));
  rows_of("managed memory", managed, 1000);
  all_ways("over the end of managed memory", managed, 1004);
  CUdeviceptr freed = must_alloc(4096);
  MUST(cuMemFree_v2(freed));
  show("a freed block", cuMemcpyHtoD_v2(freed, host.data(), 4096));
  show("inside of it", cuMemcpyHtoD_v2(freed + 100, host.data(), 4));
  show("no bytes of it", cuMemcpyHtoD_v2(freed, host.data(), 0));
  show("between host addresses", cuMemcpy(reinterpret_cast<CUdeviceptr>(got.data()), reinterpret_cast<CUdeviceptr>(sent.data()), 100));
  return 0;
}
