// What ends without a call of its own: blocks with their context, pending frees with their stream, handles that the driver
// gives out again.
#include <utility>

#include "runtime/base/memory_map.h"
#include "runtime/runtime.h"

namespace xlog {

namespace {

bool belongs_to(const DeviceBlock& block, CUcontext context) noexcept {
  return block.context == context && (block.kind == Kind::plain || block.kind == Kind::pitch);
}

}  // namespace

template <class Act>
void Runtime::each_device(Act act) noexcept {
  for (auto& each : built_) {
    NativeDevice* target = each.load(std::memory_order_acquire);
    if (target != nullptr) {
      act(*target);
      target->settle();
    }
  }
}

void Runtime::begin_exit() noexcept {
  each_source([](PlainSource& source) { source.begin_exit(); });
  recorder_.begin_exit();
}

void Runtime::stream_destroyed(CUstream stream) noexcept {
  gate_.ended({.handle = stream});
  each_device([stream](NativeDevice& device) { device.native().stream_destroyed(stream); });
}

void Runtime::pool_created(CUmemoryPool pool, const CUmemPoolProps* properties) noexcept {
  bool on_device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  devices_.pool_created(pool, on_device ? properties->location.id : -1);
}

void Runtime::pool_destroyed(CUmemoryPool pool) noexcept {
  devices_.pool_destroyed(pool);
  each_device([pool](NativeDevice& device) { device.native().pool_destroyed(pool); });
}

void Runtime::forget_context(CUcontext context) noexcept {
  devices_.context_destroyed(context);
  gate_.context_ended(context);
  each_source([context](PlainSource& source) { source.finish_context_end(context); });
  each_device([context](NativeDevice& device) { device.native().context_destroyed(context); });
}

Runtime::ContextEnd::ContextEnd(Runtime& runtime, CUcontext context, std::string_view api, bool alive) noexcept
    : runtime_(runtime), context_(context), api_(api) {
  if (context != nullptr) {
    runtime.each_source([=](PlainSource& source) { source.begin_context_end(context, alive); });
    hold_blocks(alive);
  }
}

void Runtime::ContextEnd::hold_blocks(bool alive) noexcept {
  size_t live = runtime_.registry_.size();
  mapped_bytes_ = live * (sizeof(Leaving) + sizeof(DeviceBlock));
  leaving_ = live != 0 ? static_cast<Leaving*>(map_state(mapped_bytes_)) : nullptr;
  if (leaving_ == nullptr) {
    return;
  }
  auto* blocks = reinterpret_cast<DeviceBlock*>(leaving_ + live);
  count_ = runtime_.registry_.take_if([this](const DeviceBlock& block) { return belongs_to(block, context_); }, blocks, live);
  for (size_t i = 0; i < count_; ++i) {
    DeviceBlock& block = leaving_[i].block;
    block = std::move(blocks[i]);
    NativeDevice* owner = runtime_.device(block.device);
    if (owner != nullptr && owner->logging() != nullptr) {
      owner->logging()->hold_end(block, action::context_destroyed, api_, leaving_[i].row);
    }
    if (owner != nullptr && block.maker == Maker::pool) {  // it does not end with its context by itself
      owner->source()->end_block(block, alive);
    }
  }
}

void Runtime::ContextEnd::finish(CUresult result) noexcept {
  for (size_t i = 0; i < count_; ++i) {
    DeviceBlock& block = leaving_[i].block;
    NativeDevice* owner = runtime_.device(block.device);
    if (owner != nullptr && owner->logging() != nullptr) {
      owner->logging()->complete_end(block, action::context_destroyed, api_, leaving_[i].row, result);
    }
    bool gone = result == CUDA_SUCCESS || block.maker == Maker::pool;
    if (gone && owner != nullptr) {
      owner->ended(block);
      if (block.maker == Maker::cache) {
        owner->source()->end_block(block, false);
      }
    }
    DeviceBlock ended;
    if (!gone && runtime_.registry_.insert(std::move(block), ended)) {
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
  ContextEnd(*this, context, api, false).finish(CUDA_SUCCESS);
}

}  // namespace xlog
