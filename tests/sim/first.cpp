// The calls of the first drivers, with 32-bit sizes and addresses: they work in contexts of the first cuCtxCreate.
#include <algorithm>
#include <cstdlib>

#include "tests/sim/driver.h"

using namespace sim;

namespace {

struct FirstCall : Call {
  explicit FirstCall(const char* name) : Call(name, Needs::context) {}
  [[nodiscard]] CUresult refusal() const { return failed() ? result() : context()->first ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT; }
};

// The memory behind the 32-bit addresses that were given out.
std::map<unsigned, uint64_t>& given_out() {
  static auto* all = new std::map<unsigned, uint64_t>;
  return *all;
}

CUresult allocate(const char* name, unsigned* out, uint64_t bytes) {
  FirstCall call(name);
  if (call.refusal() != CUDA_SUCCESS || out == nullptr || bytes == 0) {
    if (out != nullptr && !call.failed()) {
      *out = 0;
    }
    return call.refusal() != CUDA_SUCCESS ? call.refusal() : CUDA_ERROR_INVALID_VALUE;
  }
  uint64_t memory = 0;
  CUresult result = allocate_plain(*call.context(), bytes, memory);
  static unsigned next = 0x0c40'0000;
  *out = result == CUDA_SUCCESS ? next : 0;
  if (result == CUDA_SUCCESS) {
    Driver::get().blocks.at(memory).sort = Block::Sort::array;  // no newer call knows it
    given_out()[next] = memory;
    next += 0x200;
  }
  return result;
}

}  // namespace

SIM_EXPORT CUresult cuMemAlloc(unsigned* out, unsigned bytes) { return allocate("cuMemAlloc", out, bytes); }
SIM_EXPORT CUresult cuMemAllocPitch(unsigned* out, unsigned* pitch, unsigned width, unsigned height, unsigned) {
  *pitch = (width + 511) / 512 * 512;
  return allocate("cuMemAllocPitch", out, uint64_t{*pitch} * height);
}

SIM_EXPORT CUresult cuMemFree(unsigned ptr) {
  FirstCall call("cuMemFree");
  auto it = given_out().find(ptr);
  if (call.refusal() != CUDA_SUCCESS || it == given_out().end()) {
    return call.refusal() != CUDA_SUCCESS ? call.refusal() : CUDA_ERROR_INVALID_VALUE;
  }
  auto& blocks = Driver::get().blocks;
  auto block = blocks.find(it->second);
  if (block != blocks.end()) {
    release_plain(block->second);
    end_life(block->second.serial);
    blocks.erase(block);
  }
  given_out().erase(it);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemGetInfo(unsigned* free, unsigned* total) {
  FirstCall call("cuMemGetInfo");
  if (call.refusal() == CUDA_SUCCESS) {
    uint64_t whole = call.device().total;
    uint64_t left = whole - call.device().used;
    *free = static_cast<unsigned>(std::min<uint64_t>(left, UINT32_MAX));
    *total = static_cast<unsigned>(std::min<uint64_t>(whole, UINT32_MAX));
  }
  return call.refusal();
}

SIM_EXPORT CUresult cuDeviceTotalMem(unsigned* bytes, CUdevice ordinal) {
  Call call("cuDeviceTotalMem", Call::Needs::init);
  const auto& devices = Driver::get().devices;
  if (call.failed() || bytes == nullptr || ordinal < 0 || static_cast<size_t>(ordinal) >= devices.size()) {
    return call.failed() ? call.result() : bytes == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
  }
  *bytes = static_cast<unsigned>(std::min<uint64_t>(devices[static_cast<size_t>(ordinal)]->total, UINT32_MAX));
  return CUDA_SUCCESS;
}

// Arrays and pinned memory as the newer calls make them, without what those ask of the context.
SIM_EXPORT CUresult cuArrayCreate(CUarray* out, const CUDA_ARRAY_DESCRIPTOR_v1* d) {
  {
    FirstCall call("cuArrayCreate");
    if (call.refusal() != CUDA_SUCCESS) {
      return call.refusal();
    }
  }
  CUDA_ARRAY_DESCRIPTOR whole{d->Width, d->Height, d->Format, d->NumChannels};
  return cuArrayCreate_v2(out, &whole);
}
SIM_EXPORT CUresult cuArray3DCreate(CUarray* out, const CUDA_ARRAY3D_DESCRIPTOR_v1* d) {
  {
    FirstCall call("cuArray3DCreate");
    if (call.refusal() != CUDA_SUCCESS) {
      return call.refusal();
    }
  }
  CUDA_ARRAY3D_DESCRIPTOR whole{d->Width, d->Height, d->Depth, d->Format, d->NumChannels, d->Flags};
  return cuArray3DCreate_v2(out, &whole);
}
SIM_EXPORT CUresult cuMemAllocHost(void** out, unsigned bytes) {
  {
    FirstCall call("cuMemAllocHost");
    if (call.refusal() != CUDA_SUCCESS) {
      return call.refusal();
    }
  }
  return cuMemAllocHost_v2(out, bytes);
}

// A function that makes memory, newer than the library.
SIM_EXPORT CUresult cuMulticastCreate(CUmemGenericAllocationHandle*, const CUmulticastObjectProp*) {
  Call call("cuMulticastCreate", Call::Needs::nothing);
  return call.failed() ? call.result() : CUDA_ERROR_NOT_SUPPORTED;
}
