// Several devices that read each other's memory.
#include <cstdlib>
#include <cstring>

#include "tests/sim/driver.h"

using namespace sim;

SIM_EXPORT CUresult cuDeviceCanAccessPeer(int* can, CUdevice a, CUdevice b) {
  Call call("cuDeviceCanAccessPeer", Call::Needs::init);
  if (!call.failed()) {
    *can = a != b ? 1 : 0;
  }
  return call.result();
}

SIM_EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags) {
  Call call("cuCtxEnablePeerAccess", Call::Needs::context);
  auto* owner = reinterpret_cast<Context*>(peer);
  Driver& driver = Driver::get();
  if (call.failed() || flags != 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  if (!is_known(owner)) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (owner->device == call.context()->device) {
    return CUDA_ERROR_INVALID_DEVICE;
  }
  return driver.peers.emplace(call.context(), owner).second ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
}

namespace {

// Whether `reader` may touch the block: XLOG_SIM_PEER_BUG=1 is the driver of CUDA.jl PR 3112, whose copies into a pool
// with granted access write nothing.
bool arrives(uint64_t ptr) {
  Block* block = find_block(ptr);
  const char* bug = std::getenv("XLOG_SIM_PEER_BUG");
  return block == nullptr || block->pool == nullptr || block->pool->readers.empty() || bug == nullptr;
}

}  // namespace

SIM_EXPORT CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, size_t bytes, CUstream handle) {
  Call call("cuMemcpyPeerAsync", Call::Needs::context);
  Stream* stream = call.failed() ? nullptr : call.stream(handle);
  if (stream == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_HANDLE;
  }
  enqueue(*stream, [=, write = use_of(to, stream), read = use_of(from, stream), good = arrives(to) && arrives(from)] {
    write.check();
    read.check();
    if (good) {
      std::memmove(reinterpret_cast<void*>(to), reinterpret_cast<void*>(from), bytes);
    }
    return true;
  });
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuPointerSetAttribute(const void*, CUpointer_attribute, CUdeviceptr ptr) {
  Call call("cuPointerSetAttribute", Call::Needs::context);
  return call.failed() ? call.result() : find_block(ptr) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
