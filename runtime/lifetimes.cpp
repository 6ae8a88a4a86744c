// What ends without a call of its own: blocks with their context, pending frees with their stream, handles that the driver
// gives out again.
#include "runtime/base/memory_map.h"
#include "runtime/runtime.h"

namespace xlog {

namespace {

bool belongs_to(const DeviceBlock& block, const void* context) noexcept {
  return block.context == context && (block.kind == Kind::plain || block.kind == Kind::pitch);
}

}  // namespace

void Runtime::stream_destroyed(CUstream stream) noexcept {
  for (auto& each : built_) {
    XlogDeviceRuntime* target = each.load(std::memory_order_acquire);
    if (target != nullptr && target->budget() != nullptr) {
      target->budget()->stream_destroyed(stream);
    }
  }
}

void Runtime::pool_created(CUmemoryPool pool, const CUmemPoolProps* properties) noexcept {
  bool on_device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  devices_.pool_created(pool, on_device ? properties->location.id : -1);
}

void Runtime::pool_destroyed(CUmemoryPool pool) noexcept {
  devices_.pool_destroyed(pool);
  for (auto& each : built_) {
    XlogDeviceRuntime* target = each.load(std::memory_order_acquire);
    if (target != nullptr && target->budget() != nullptr) {
      target->budget()->pool_destroyed(pool);
    }
  }
}

void Runtime::forget_context(CUcontext context) noexcept {
  devices_.context_destroyed(context);
  for (auto& each : built_) {
    XlogDeviceRuntime* target = each.load(std::memory_order_acquire);
    if (target != nullptr && target->budget() != nullptr) {
      target->budget()->context_destroyed(context);
    }
  }
}

Runtime::ContextEnd::ContextEnd(Runtime& runtime, CUcontext context, std::string_view api) noexcept
    : runtime_(runtime), context_(context), api_(api) {
  size_t live = context != nullptr ? runtime.registry_.size() : 0;
  if (live == 0) {
    return;
  }
  mapped_bytes_ = live * (sizeof(Leaving) + sizeof(DeviceBlock));
  leaving_ = static_cast<Leaving*>(map_state(mapped_bytes_));
  if (leaving_ == nullptr) {
    return;
  }
  auto* blocks = reinterpret_cast<DeviceBlock*>(leaving_ + live);
  count_ = runtime.registry_.take_if(belongs_to, context, blocks, live);
  for (size_t i = 0; i < count_; ++i) {
    leaving_[i].block = blocks[i];
    XlogDeviceRuntime* owner = runtime.device(blocks[i].device);
    if (owner != nullptr && owner->logging() != nullptr) {
      owner->logging()->hold_end(blocks[i], action::context_destroyed, api, leaving_[i].row);
    }
  }
}

void Runtime::ContextEnd::finish(CUresult result) noexcept {
  for (size_t i = 0; i < count_; ++i) {
    const DeviceBlock& block = leaving_[i].block;
    XlogDeviceRuntime* owner = runtime_.device(block.device);
    if (owner != nullptr && owner->logging() != nullptr) {
      owner->logging()->complete_end(block, action::context_destroyed, api_, leaving_[i].row, result);
    }
    if (result == CUDA_SUCCESS && owner != nullptr && owner->budget() != nullptr) {
      owner->budget()->credit(block);
    }
    DeviceBlock ended;
    if (result != CUDA_SUCCESS && runtime_.registry_.insert(block, ended)) {
      runtime_.ended_unseen(ended);
    }
  }
  if (leaving_ != nullptr) {
    unmap_state(leaving_, mapped_bytes_);
  }
  if (result == CUDA_SUCCESS && context_ != nullptr) {
    runtime_.forget_context(context_);
  }
}

void Runtime::primary_released(CUdevice ordinal, std::string_view api) noexcept {
  unsigned flags = 0;
  int active = 1;
  CUcontext context = primary(ordinal);
  if (context == nullptr || driver_.cuDevicePrimaryCtxGetState == nullptr ||
      driver_.cuDevicePrimaryCtxGetState(ordinal, &flags, &active) != CUDA_SUCCESS || active != 0) {
    return;
  }
  // It was the last: what the context held is gone already, so the rows follow the call.
  ContextEnd(*this, context, api).finish(CUDA_SUCCESS);
}

}  // namespace xlog
