// What the driver says of addresses, copies and sets at and past the end of a block. Nothing is accessed by a kernel.
#include <initializer_list>
#include <string>

#include "programs/program.h"

namespace {

CUstream stream = nullptr;
char host[1 << 12];
CUdeviceptr big = 0;  // a block that every copy fits into

void show(const char* what, CUresult r) { std::printf("  %s: %d\n", what, r); }

void addresses(CUdeviceptr p, size_t at) {
  CUdeviceptr base = 1;
  size_t size = 1;
  CUresult r = cuMemGetAddressRange_v2(&base, &size, p + at);
  std::printf("  at %zu: range %d, base %d, size %zu;", at, r, base == p, size);
  r = cuMemGetAddressRange_v2(nullptr, &size, p + at);
  unsigned type = 77;
  CUresult of_type = cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p + at);
  std::printf(" size alone %d; type %d %u;", r, of_type, type);
  size_t range = 77;
  r = cuPointerGetAttribute(&range, CU_POINTER_ATTRIBUTE_RANGE_SIZE, p + at);
  CUdeviceptr start = 77;
  CUresult of_start = cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, p + at);
  std::printf(" attributes %d %zu, %d %d;", r, range, of_start, start == p ? 1 : start == 77 ? 77 : 0);
  CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR};
  type = 77;
  range = 77;
  start = 77;
  void* values[] = {&type, &range, &start};
  r = cuPointerGetAttributes(3, wanted, values, p + at);
  std::printf(" together %d: %u %zu %d\n", r, type, range, start == p ? 1 : start == 77 ? 77 : 0);
}

void copies(CUdeviceptr p, size_t end, size_t n, const char* what) {
  std::printf(" %s\n", what);
  CUdeviceptr at = p + end;
  show("HtoD", cuMemcpyHtoD_v2(at, host, n));
  show("DtoH", cuMemcpyDtoH_v2(host, at, n));
  show("DtoD to", cuMemcpyDtoD_v2(at, big, n));
  show("DtoD from", cuMemcpyDtoD_v2(big, at, n));
  bool inside = n != 0 && what[0] != 't';  // an address that the driver does not know is taken for the host's, and crashes
  if (inside) {
    show("unified to", cuMemcpy(at, big, n));
  }
  show("HtoDAsync", cuMemcpyHtoDAsync_v2(at, host, n, stream));
  show("DtoHAsync", cuMemcpyDtoHAsync_v2(host, at, n, stream));
  show("DtoDAsync to", cuMemcpyDtoDAsync_v2(at, big, n, stream));
  show("DtoDAsync from", cuMemcpyDtoDAsync_v2(big, at, n, stream));
  if (inside) {
    show("unified async from", cuMemcpyAsync(big, at, n, stream));
  }
  show("D8", cuMemsetD8_v2(at, 0, n));
  show("D8Async", cuMemsetD8Async(at, 0, n, stream));
  show("D2D8", cuMemsetD2D8_v2(at, n, 0, n, 1));
  CUDA_MEMCPY2D plane{};
  plane.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  plane.srcDevice = at;
  plane.srcPitch = n;
  plane.dstMemoryType = CU_MEMORYTYPE_HOST;
  plane.dstHost = host;
  plane.dstPitch = n;
  plane.WidthInBytes = n;
  plane.Height = 1;
  show("2D", cuMemcpy2D_v2(&plane));
  show("2DAsync", cuMemcpy2DAsync_v2(&plane, stream));
  CUDA_MEMCPY3D space{};
  space.srcMemoryType = CU_MEMORYTYPE_DEVICE;
  space.srcDevice = at;
  space.srcPitch = n;
  space.srcHeight = 1;
  space.dstMemoryType = CU_MEMORYTYPE_HOST;
  space.dstHost = host;
  space.dstPitch = n;
  space.dstHeight = 1;
  space.WidthInBytes = n;
  space.Height = 1;
  space.Depth = 1;
  show("3D", cuMemcpy3D_v2(&space));
  show("synchronise", cuCtxSynchronize());
}

void words(CUdeviceptr p, size_t bytes) {
  std::printf(" words over the end\n");
  CUdeviceptr at = (p + bytes - 4) / 4 * 4;
  size_t n = 3;
  show("D16", cuMemsetD16_v2(at, 0, n * 2));
  show("D32", cuMemsetD32_v2(at, 0, n));
  show("D32Async", cuMemsetD32Async(at, 0, n, stream));
  show("D2D32", cuMemsetD2D32_v2(at, 4, 0, 1, n));
  show("synchronise", cuCtxSynchronize());
}

void all(const char* what, CUdeviceptr p, size_t bytes) {
  std::printf("%s, %zu bytes\n", what, bytes);
  for (size_t at : {bytes - 1, bytes, bytes + 20}) {
    addresses(p, at);
  }
  copies(p, bytes - 1, 1, "in: the last byte");
  copies(p, bytes - 1, 2, "over: one past");
  copies(p, bytes, 1, "the first past");
  copies(p, bytes, 0, "the first past, no bytes");
  words(p, bytes);
  std::fflush(stdout);
}

}  // namespace

int main() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  start();
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  big = must_alloc(16 << 20);
  for (size_t bytes : {1000UL, (1UL << 20) + 1}) {
    CUdeviceptr p = must_alloc(bytes);
    all("plain", p, bytes);
    MUST(cuMemFree_v2(p));
    MUST(cuMemAllocAsync(&p, bytes, stream));
    MUST(cuStreamSynchronize(stream));
    all("stream-ordered", p, bytes);
    MUST(cuMemFreeAsync(p, stream));
    MUST(cuStreamSynchronize(stream));
  }
  CUdeviceptr p = 0;
  size_t pitch = 0;
  MUST(cuMemAllocPitch_v2(&p, &pitch, 1000, 3, 4));
  std::printf("pitch %zu\n", pitch);
  all("pitched", p, pitch * 3);
  return 0;
}
