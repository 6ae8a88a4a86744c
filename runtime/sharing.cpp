// What the program does with blocks beside allocating and freeing them: gives other devices and other processes access,
// needs what a backend holds.
#include "runtime/runtime.h"

namespace xlog {

// On every GPU: a call names its own in ways of its own.
bool Runtime::relieve() noexcept {
  bool any = false;
  each_source([&](PlainSource& source) { any = source.relieve() || any; });
  return any;
}

CUcontext Runtime::context_of(const StreamArg& stream) noexcept {
  CUcontext context = nullptr;
  bool special = stream.is_legacy() || stream.is_per_thread() || driver_.cuStreamGetCtx == nullptr;
  if (special || driver_.cuStreamGetCtx(stream.handle, &context) != CUDA_SUCCESS) {
    driver_.cuCtxGetCurrent(&context);
  }
  return context;
}

void Runtime::peer_enabled(CUcontext owner) noexcept {
  if (options_.backend != Backend::async) {
    return;
  }
  CUcontext reader = nullptr;
  driver_.cuCtxGetCurrent(&reader);
  NativeDevice* target = device(devices_.of_context(driver_, owner));
  if (target != nullptr && target->pool() != nullptr && reader != nullptr) {
    target->pool()->grant_peer(owner, reader, devices_.of_current(driver_));
  }
}

void Runtime::green_context_made(CUcontext context) noexcept {
  NativeDevice* target = has_sources() || options_.guards() ? device(devices_.of_context(driver_, context)) : nullptr;
  if (target != nullptr && target->source() != nullptr) {
    target->source()->refuse_context(context);
  }
  if (target != nullptr && target->guard() != nullptr) {
    target->guard()->refuse_context(context);
  }
}

void Runtime::shared_out(CUdeviceptr ptr) noexcept {
  CUdeviceptr base = 0;
  if (holds_back() && driver_.cuMemGetAddressRange_v2(&base, nullptr, ptr) == CUDA_SUCCESS) {
    registry_.visit(base, [](DeviceBlock* block) {
      if (block != nullptr) {
        block->shared = true;
      }
      return false;
    });
  }
}

void Runtime::not_supported(CUdeviceptr ptr, std::string_view api, CUresult result) noexcept {
  CUdeviceptr base = 0;
  bool pooled = false;
  // Other codes are about other arguments than the memory.
  bool about_memory = result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED;
  if (about_memory && options_.backend == Backend::async && driver_.cuMemGetAddressRange_v2(&base, nullptr, ptr) == CUDA_SUCCESS) {
    registry_.visit(base, [&](DeviceBlock* block) {
      pooled = block != nullptr && block->maker == Maker::pool;
      return false;
    });
  }
  if (pooled && said_not_supported_.first()) {
    Text<300> line;
    line.put(api).put(": ").put(result_name(result)).put(": not supported by memory from XLOG_BACKEND=async; ");
    line.put("XLOG_BACKEND=cache serves memory that does");
    say(line.view());
  }
}

}  // namespace xlog
