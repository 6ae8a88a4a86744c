// Copies and sets. The driver checks each against the requested size of the blocks that it touches, to the byte; with a
// guard the blocks are larger below, so a range that enters a zone gets here what the driver would have said
// (tests/gpu/past_the_end.expected). Without one these calls are the driver's.
#include "shim/entry.h"

using xlog::Entry;
using xlog::Row;
using xlog::Runtime;

namespace {

// A range of device memory that a call touches.
struct Range {
  CUdeviceptr at;
  size_t bytes;
};

// The bytes from the first of `count` pieces of `bytes` bytes to the end of the last, where they lie `step` bytes apart. What no
// size_t holds is the largest size there is: such a range ends past every block.
size_t spread(size_t count, size_t step, size_t bytes) {
  size_t whole = 0;
  if (count == 0 || bytes == 0) {
    return 0;
  }
  return __builtin_mul_overflow(count - 1, step, &whole) || __builtin_add_overflow(whole, bytes, &whole) ? SIZE_MAX : whole;
}

// Rows of `width` bytes that lie `pitch` apart.
Range rows(CUdeviceptr at, size_t pitch, size_t width, size_t height) { return {at, spread(height, pitch, width)}; }

template <class Copy>
Range side(CUmemorytype type, CUdeviceptr at, size_t first, size_t pitch, size_t slice, const Copy& copy, size_t depth) {
  bool touched = type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED;
  return {at + first, touched ? spread(depth, slice, spread(copy.Height, pitch, copy.WidthInBytes)) : 0};
}

Range source(const CUDA_MEMCPY2D* c) {
  return c == nullptr ? Range{} : side(c->srcMemoryType, c->srcDevice, c->srcY * c->srcPitch + c->srcXInBytes, c->srcPitch, 0, *c, 1);
}
Range target(const CUDA_MEMCPY2D* c) {
  return c == nullptr ? Range{} : side(c->dstMemoryType, c->dstDevice, c->dstY * c->dstPitch + c->dstXInBytes, c->dstPitch, 0, *c, 1);
}
template <class Space>  // CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER
Range source(const Space* c) {
  size_t first = c == nullptr ? 0 : (c->srcZ * c->srcHeight + c->srcY) * c->srcPitch + c->srcXInBytes;
  return c == nullptr ? Range{} : side(c->srcMemoryType, c->srcDevice, first, c->srcPitch, c->srcPitch * c->srcHeight, *c, c->Depth);
}
template <class Space>
Range target(const Space* c) {
  size_t first = c == nullptr ? 0 : (c->dstZ * c->dstHeight + c->dstY) * c->dstPitch + c->dstXInBytes;
  return c == nullptr ? Range{} : side(c->dstMemoryType, c->dstDevice, first, c->dstPitch, c->dstPitch * c->dstHeight, *c, c->Depth);
}

bool is_refused(Runtime& runtime, const Range& range) noexcept {
  return range.bytes != 0 && (runtime.is_gone(range.at) || (runtime.guards() && runtime.is_past_the_end(range.at, range.bytes)));
}

bool is_refused(Entry& entry, const Range& a, const Range& b = {}) noexcept {
  return entry.serves() && entry.runtime().hides_memory() && (is_refused(entry.runtime(), a) || is_refused(entry.runtime(), b));
}

}  // namespace

extern "C" {

// XLOG_BOUNDED(name, type, (parameters), (ranges), arguments...)
#define XLOG_BOUNDED(name, type, parameters, ranges, ...)                         \
  XLOG_EXPORT CUresult name parameters {                                          \
    Entry entry(Row::name);                                                       \
    if (is_refused ranges) {                                                      \
      return CUDA_ERROR_INVALID_VALUE;                                            \
    }                                                                             \
    return entry.explained(entry.forward<decltype(&::type)>(__VA_ARGS__), #name); \
  }
// The twins differ in what stream 0 means.
#define XLOG_BOUNDED_TWINS(name, twin, parameters, ranges, ...) \
  XLOG_BOUNDED(name, name, parameters, ranges, __VA_ARGS__)     \
  XLOG_BOUNDED(name##twin, name, parameters, ranges, __VA_ARGS__)

XLOG_BOUNDED_TWINS(cuMemcpy, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t n), (entry, {to, n}, {from, n}), to, from, n)
XLOG_BOUNDED_TWINS(cuMemcpyAsync, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), (entry, {to, n}, {from, n}), to, from, n,
                   s)
XLOG_BOUNDED_TWINS(cuMemcpyPeer, _ptds, (CUdeviceptr to, CUcontext into, CUdeviceptr from, CUcontext out_of, size_t n),
                   (entry, {to, n}, {from, n}), to, into, from, out_of, n)
XLOG_BOUNDED_TWINS(cuMemcpyPeerAsync, _ptsz, (CUdeviceptr to, CUcontext into, CUdeviceptr from, CUcontext out_of, size_t n, CUstream s),
                   (entry, {to, n}, {from, n}), to, into, from, out_of, n, s)
XLOG_BOUNDED_TWINS(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr to, const void* from, size_t n), (entry, {to, n}), to, from, n)
XLOG_BOUNDED_TWINS(cuMemcpyDtoH_v2, _ptds, (void* to, CUdeviceptr from, size_t n), (entry, {from, n}), to, from, n)
XLOG_BOUNDED_TWINS(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr to, CUdeviceptr from, size_t n), (entry, {to, n}, {from, n}), to, from, n)
XLOG_BOUNDED_TWINS(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr to, const void* from, size_t n, CUstream s), (entry, {to, n}), to, from, n, s)
XLOG_BOUNDED_TWINS(cuMemcpyDtoHAsync_v2, _ptsz, (void* to, CUdeviceptr from, size_t n, CUstream s), (entry, {from, n}), to, from, n, s)
XLOG_BOUNDED_TWINS(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr to, CUdeviceptr from, size_t n, CUstream s), (entry, {to, n}, {from, n}), to,
                   from, n, s)
XLOG_BOUNDED_TWINS(cuMemcpyDtoA_v2, _ptds, (CUarray to, size_t at, CUdeviceptr from, size_t n), (entry, {from, n}), to, at, from, n)
XLOG_BOUNDED_TWINS(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr to, CUarray from, size_t at, size_t n), (entry, {to, n}), to, from, at, n)
XLOG_BOUNDED_TWINS(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D* c), (entry, target(c), source(c)), c)
XLOG_BOUNDED_TWINS(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D* c), (entry, target(c), source(c)), c)
XLOG_BOUNDED_TWINS(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D* c, CUstream s), (entry, target(c), source(c)), c, s)
XLOG_BOUNDED_TWINS(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D* c), (entry, target(c), source(c)), c)
XLOG_BOUNDED_TWINS(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D* c, CUstream s), (entry, target(c), source(c)), c, s)
XLOG_BOUNDED_TWINS(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER* c), (entry, target(c), source(c)), c)
XLOG_BOUNDED_TWINS(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER* c, CUstream s), (entry, target(c), source(c)), c, s)

#define XLOG_SETS(bits, word)                                                                                                              \
  XLOG_BOUNDED_TWINS(cuMemsetD##bits##_v2, _ptds, (CUdeviceptr to, word value, size_t n),                                                  \
                     (entry, {to, spread(n, sizeof value, sizeof value)}), to, value, n)                                                   \
  XLOG_BOUNDED_TWINS(cuMemsetD##bits##Async, _ptsz, (CUdeviceptr to, word value, size_t n, CUstream s),                                    \
                     (entry, {to, spread(n, sizeof value, sizeof value)}), to, value, n, s)                                                \
  XLOG_BOUNDED_TWINS(cuMemsetD2D##bits##_v2, _ptds, (CUdeviceptr to, size_t pitch, word value, size_t width, size_t height),               \
                     (entry, rows(to, pitch, spread(width, sizeof value, sizeof value), height)), to, pitch, value, width, height)         \
  XLOG_BOUNDED_TWINS(cuMemsetD2D##bits##Async, _ptsz, (CUdeviceptr to, size_t pitch, word value, size_t width, size_t height, CUstream s), \
                     (entry, rows(to, pitch, spread(width, sizeof value, sizeof value), height)), to, pitch, value, width, height, s)
XLOG_SETS(8, unsigned char)
XLOG_SETS(16, unsigned short)
XLOG_SETS(32, unsigned)

}  // extern "C"
