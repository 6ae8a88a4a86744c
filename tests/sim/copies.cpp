// Copies and sets. Each is checked against the requested size of the blocks that it touches, to the byte, before anything
// else happens (tests/gpu/past_the_end.expected).
#include <algorithm>
#include <cstring>

#include "tests/sim/driver.h"

using namespace sim;

namespace {

// Bytes of device memory that a call touches.
struct Side {
  uint64_t at;
  size_t bytes;
};

void* host(uint64_t ptr) { return reinterpret_cast<void*>(ptr); }

// A copy and a set may run over mappings that lie side by side (measured on an H200: 0, where cuMemGetAddressRange tells only the
// first). Appends the blocks that the bytes lie in; false where some lie in none.
bool add_blocks(const Side& side, std::vector<uint64_t>& starts) {
  uint64_t at = side.at;
  for (size_t left = side.bytes; left != 0;) {
    Block* block = find_block(at);
    if (block == nullptr || (at != side.at && block->sort != Block::Sort::mapped)) {
      return false;
    }
    starts.push_back(at);
    size_t here = block->size - (at - block->ptr);
    if (left > here && block->sort != Block::Sort::mapped) {
      return false;
    }
    left -= std::min(left, here);
    at += here;
  }
  return true;
}

CUresult run(const char* name, std::vector<Side> sides, CUstream handle, bool wait, std::function<void()> work, bool per_thread = false) {
  Call call(name, Call::Needs::context, per_thread);
  Stream* stream = call.failed() ? nullptr : call.stream(handle);
  bool building = stream != nullptr && stream->capture != nullptr;
  std::vector<uint64_t> starts;
  for (const Side& side : sides) {
    if (!call.failed() && !in_graph_memory(side.at, side.bytes, building) && !add_blocks(side, starts)) {
      return CUDA_ERROR_INVALID_VALUE;
    }
  }
  if (stream == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_HANDLE;
  }
  // Work in the legacy stream beside a capture of a blocking stream of the context.
  for (Stream* each : all_streams(*stream->context)) {
    if (stream == stream->context->legacy.get() && each->blocking && each->capture != nullptr) {
      each->capture->invalidated = true;
      return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    }
  }
  std::vector<Use> uses;
  for (uint64_t at : starts) {
    uses.push_back(use_of(at, stream));
  }
  std::function<bool()> checked = [uses, work = std::move(work)] {
    for (const Use& use : uses) {
      use.check();
    }
    work();
    return true;
  };
  if (building) {
    add_captured(*stream->capture, GraphNode{.type = CU_GRAPH_NODE_TYPE_MEMCPY, .run = std::move(checked)});
    return CUDA_SUCCESS;
  }
  enqueue(*stream, std::move(checked));
  if (wait) {
    wait_until([stream] { return is_idle(*stream); }, Driver::get().lock);
    release_idle_pools();
    return stream->context->fault;
  }
  return CUDA_SUCCESS;
}

CUresult to_device(const char* name, uint64_t to, const void* from, size_t n, CUstream stream, bool wait, bool per_thread = false) {
  // Pageable memory is read before the call returns.
  std::vector<char> copy(static_cast<const char*>(from), static_cast<const char*>(from) + n);
  return run(
      name, {{to, n}}, stream, wait, [=, copy = std::move(copy)] { std::memcpy(host(to), copy.data(), n); }, per_thread);
}

CUresult to_host(const char* name, void* to, uint64_t from, size_t n, CUstream stream, bool wait, bool per_thread = false) {
  return run(
      name, {{from, n}}, stream, wait, [=] { std::memcpy(to, host(from), n); }, per_thread);
}

CUresult within(const char* name, uint64_t to, uint64_t from, size_t n, CUstream stream, bool wait) {
  return run(name, {{to, n}, {from, n}}, stream, wait, [=] { std::memmove(host(to), host(from), n); });
}

// An address that is no block's is taken for the host's.
CUresult unified(const char* name, uint64_t to, uint64_t from, size_t n, CUstream stream, bool wait) {
  std::vector<Side> sides;
  for (uint64_t at : {to, from}) {
    std::lock_guard guard(Driver::get().lock);
    if (find_block(at) != nullptr) {
      sides.push_back({at, n});
    }
  }
  return run(name, sides, stream, wait, [=] { std::memmove(host(to), host(from), n); });
}

template <class Word>
CUresult set(const char* name, uint64_t to, size_t pitch, Word value, size_t width, size_t height, CUstream stream,
             bool per_thread = false) {
  size_t last = height == 0 || width == 0 ? 0 : (height - 1) * pitch + width * sizeof(Word);
  return run(
      name, {{to, last}}, stream, false,
      [=] {
        for (size_t row = 0; row < height; ++row) {
          auto* at = reinterpret_cast<Word*>(to + row * pitch);
          std::fill_n(at, width, value);
        }
      },
      per_thread);
}

// Of one side of a 2D or 3D copy: the device's, or none.
template <class Copy>
void add_side(std::vector<Side>& sides, CUmemorytype type, uint64_t at, size_t first, size_t pitch, size_t height, const Copy& copy,
              size_t depth) {
  if (type == CU_MEMORYTYPE_DEVICE && copy.WidthInBytes != 0 && copy.Height != 0 && depth != 0) {
    sides.push_back({at + first, (depth - 1) * pitch * height + (copy.Height - 1) * pitch + copy.WidthInBytes});
  }
}

CUresult plane(const char* name, const CUDA_MEMCPY2D& c, CUstream stream, bool wait) {
  std::vector<Side> sides;
  add_side(sides, c.srcMemoryType, c.srcDevice, c.srcY * c.srcPitch + c.srcXInBytes, c.srcPitch, 0, c, 1);
  add_side(sides, c.dstMemoryType, c.dstDevice, c.dstY * c.dstPitch + c.dstXInBytes, c.dstPitch, 0, c, 1);
  return run(name, sides, stream, wait, [c] {
    auto base = [](CUmemorytype type, uint64_t device, const void* memory) {
      return type == CU_MEMORYTYPE_DEVICE ? reinterpret_cast<char*>(device) : static_cast<char*>(const_cast<void*>(memory));
    };
    for (size_t row = 0; row < c.Height; ++row) {
      std::memcpy(base(c.dstMemoryType, c.dstDevice, c.dstHost) + (c.dstY + row) * c.dstPitch + c.dstXInBytes,
                  base(c.srcMemoryType, c.srcDevice, c.srcHost) + (c.srcY + row) * c.srcPitch + c.srcXInBytes, c.WidthInBytes);
    }
  });
}

}  // namespace

SIM_EXPORT CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t n) {
  return to_device("cuMemcpyHtoD_v2", to, from, n, nullptr, true);
}
SIM_EXPORT CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t n) { return to_host("cuMemcpyDtoH_v2", to, from, n, nullptr, true); }
SIM_EXPORT CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t n) {
  return within("cuMemcpyDtoD_v2", to, from, n, nullptr, false);
}
SIM_EXPORT CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t n) { return unified("cuMemcpy", to, from, n, nullptr, true); }
SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t n, CUstream stream) {
  return to_device("cuMemcpyHtoDAsync_v2", to, from, n, stream, false);
}
SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t n, CUstream stream) {
  return to_host("cuMemcpyDtoHAsync_v2", to, from, n, stream, false);
}
SIM_EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
  return within("cuMemcpyDtoDAsync_v2", to, from, n, stream, false);
}
SIM_EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, CUstream stream) {
  return unified("cuMemcpyAsync", to, from, n, stream, false);
}
SIM_EXPORT CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* c) { return plane("cuMemcpy2D_v2", *c, nullptr, true); }
SIM_EXPORT CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* c, CUstream stream) { return plane("cuMemcpy2DAsync_v2", *c, stream, false); }
// Checked, and not carried out: no test looks at what it copies.
SIM_EXPORT CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* c) {
  std::vector<Side> sides;
  add_side(sides, c->srcMemoryType, c->srcDevice, (c->srcZ * c->srcHeight + c->srcY) * c->srcPitch + c->srcXInBytes, c->srcPitch,
           c->srcHeight, *c, c->Depth);
  add_side(sides, c->dstMemoryType, c->dstDevice, (c->dstZ * c->dstHeight + c->dstY) * c->dstPitch + c->dstXInBytes, c->dstPitch,
           c->dstHeight, *c, c->Depth);
  return run("cuMemcpy3D_v2", sides, nullptr, true, [] {});
}

#define SIM_SETS(suffix, type)                                                                                          \
  SIM_EXPORT CUresult cuMemsetD##suffix##_v2(CUdeviceptr to, type value, size_t n) {                                    \
    return set("cuMemsetD" #suffix "_v2", to, 0, value, n, 1, nullptr);                                                 \
  }                                                                                                                     \
  SIM_EXPORT CUresult cuMemsetD##suffix##Async(CUdeviceptr to, type value, size_t n, CUstream stream) {                 \
    return set("cuMemsetD" #suffix "Async", to, 0, value, n, 1, stream);                                                \
  }                                                                                                                     \
  SIM_EXPORT CUresult cuMemsetD2D##suffix##_v2(CUdeviceptr to, size_t pitch, type value, size_t width, size_t height) { \
    return set("cuMemsetD2D" #suffix "_v2", to, pitch, value, width, height, nullptr);                                  \
  }
SIM_SETS(8, unsigned char)
SIM_SETS(16, unsigned short)
SIM_SETS(32, unsigned)

// What the library itself calls of the per-thread twins.
SIM_EXPORT CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr to, const void* from, size_t n, CUstream stream) {
  return to_device("cuMemcpyHtoDAsync_v2_ptsz", to, from, n, stream, false, true);
}
SIM_EXPORT CUresult cuMemcpyDtoHAsync_v2_ptsz(void* to, CUdeviceptr from, size_t n, CUstream stream) {
  return to_host("cuMemcpyDtoHAsync_v2_ptsz", to, from, n, stream, false, true);
}
SIM_EXPORT CUresult cuMemsetD8Async_ptsz(CUdeviceptr to, unsigned char value, size_t n, CUstream stream) {
  return set("cuMemsetD8Async_ptsz", to, 0, value, n, 1, stream, true);
}
