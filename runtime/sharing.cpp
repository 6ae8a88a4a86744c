// What the program does with blocks beside allocating and freeing them: gives other devices and other processes access,
// needs what a backend holds.
#include "runtime/base/ask.h"
#include "runtime/runtime.h"

namespace xlog {

// On every GPU: a call names its own in ways of its own.
bool Runtime::relieve() noexcept {
  bool any = false;
  each_guard([&](GuardResource& guard) { any = guard.relieve(guard.given_up()) || any; });
  each_source([&](PlainSource& source) { any = source.relieve() || any; });
  return any;
}

CUcontext Runtime::context_of(const StreamArg& stream) noexcept {
  CUcontext context = nullptr;
  bool special = stream.is_legacy() || stream.is_per_thread() || driver_.cuStreamGetCtx == nullptr;
  if (special || driver_.cuStreamGetCtx(stream.handle, &context) != CUDA_SUCCESS) {
    ask_twice([&] { return driver_.cuCtxGetCurrent(&context); });
  }
  return context;
}

void Runtime::peer_enabled(CUcontext owner) noexcept {
  if (options_.backend != Backend::async && !has_fences()) {
    return;
  }
  CUcontext reader = nullptr;
  ask_twice([&] { return driver_.cuCtxGetCurrent(&reader); });
  int reader_device = devices_.of_current(driver_);
  NativeDevice* target = device(devices_.of_context(driver_, owner));
  if (target == nullptr || reader == nullptr) {
    return;
  }
  if (target->pool() != nullptr) {
    target->pool()->grant_peer(owner, reader, reader_device);
  }
  if (target->fence() != nullptr && reader_device >= 0 && reader_device != target->ordinal()) {
    target->fence()->grant_peer(reader_device);
  }
}

void Runtime::shared_out(CUdeviceptr ptr) noexcept {
  CUdeviceptr base = 0;
  size_t bytes = 0;
  if (holds_back() && find_range(ptr, base, bytes)) {
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
  size_t bytes = 0;
  Maker maker = Maker::driver;
  // Other codes are about other arguments than the memory.
  bool about_memory = result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_NOT_SUPPORTED;
  if (about_memory && (options_.backend == Backend::async || has_fences()) && find_range(ptr, base, bytes)) {
    registry_.visit(base, [&](DeviceBlock* block) {
      maker = block != nullptr ? block->maker : maker;
      return false;
    });
  }
  if (outlives_context(maker) && said_not_supported_.first()) {
    Text<300> line;
    line.put(api).put(": ").put(result_name(result)).put(": not supported by ");
    line.put(maker == Maker::pool ? "memory from XLOG_BACKEND=async; XLOG_BACKEND=cache serves memory that does"
                                  : "a fenced block; XLOG_GUARD=fence:MIN-MAX fences these sizes alone");
    say(line.view());
  }
}

}  // namespace xlog
