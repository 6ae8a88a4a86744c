// What ends without a call of its own: blocks with their context, pending frees with their stream, handles that the driver
// gives out again.
#include <utility>

#include "runtime/base/memory_map.h"
#include "runtime/runtime.h"

namespace xlog {

namespace {

// Pool blocks, physical handles and the memory of graphs outlive contexts (measured).
bool ends_with(const DeviceBlock& block, CUcontext context) noexcept {
  switch (block.kind) {
    case Kind::plain:
    case Kind::pitch:
    case Kind::managed:
    case Kind::array:
    case Kind::host:
      return block.context == context;
    default:
      return false;
  }
}

}  // namespace

template <class Act>
void Runtime::each_device(Act act) noexcept {
  devices_in_use_.each([&](NativeDevice& target) {
    act(target);
    target.settle();
  });
}

void Runtime::begin_exit() noexcept {
  findings_.summarize();
  refusals_.begin_exit();
  exiting_.store(true, std::memory_order_relaxed);
  each_guard([](GuardResource& guard) { guard.begin_exit(); });
  devices_in_use_.each([](NativeDevice& target) {
    if (target.logging() != nullptr) {
      target.logging()->record_left_out();
    }
  });
  recorder_.begin_exit();
}

void Runtime::pool_created(CUmemoryPool pool, const CUmemPoolProps* properties) noexcept {
  bool on_device = properties->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
  devices_.pool_created(pool, on_device ? properties->location.id : -1);
}

// Its handle is forgotten before the call, since the driver may give it out again at once.
Runtime::EndingPool Runtime::begin_pool_end(CUmemoryPool pool) noexcept {
  EndingPool ending{
      .device = nullptr, .number = 0, .guard_number = guard_records_.pools().begin_end(pool), .ordinal = devices_.pool_ends(pool)};
  ending.device = ending.ordinal >= 0 ? device(ending.ordinal) : nullptr;
  if (ending.device != nullptr) {
    ending.number = ending.device->native().begin_pool_end(pool);
  }
  return ending;
}

void Runtime::finish_pool_end(CUmemoryPool pool, const EndingPool& ending, bool destroyed) noexcept {
  guard_records_.pools().finish_end(ending.guard_number, pool, destroyed);
  if (!destroyed && ending.ordinal != Devices::kUnknown) {
    devices_.pool_created(pool, ending.ordinal);
  }
  if (ending.device != nullptr) {
    ending.device->native().finish_pool_end(ending.number, pool, destroyed);
    ending.device->settle();
  }
}

void Runtime::forget_context(CUcontext context) noexcept {
  devices_.context_destroyed(context);
  gate_.context_ended(context);
  contexts_.ended(context);
  each_source([context](PlainSource& source) { source.context_ended(context); });
  each_guard([context](GuardResource& guard) { guard.finish_context_end(context); });
  each_device([context](NativeDevice& device) { device.native().finish_context_end(context, true); });
}

template <class Match>
void Runtime::BulkEnd::take_if(Match match, bool alive) noexcept {
  size_t live = runtime_.registry_.size();
  mapped_bytes_ = live * (sizeof(Leaving) + sizeof(DeviceBlock));
  leaving_ = live != 0 ? static_cast<Leaving*>(map_state(mapped_bytes_)) : nullptr;
  if (leaving_ == nullptr) {
    return;
  }
  auto* blocks = reinterpret_cast<DeviceBlock*>(leaving_ + live);
  size_t taken = runtime_.registry_.take_if(match, blocks, live);
  for (size_t i = 0; i < taken; ++i) {
    hold(std::move(blocks[i]), alive);
  }
}

void Runtime::BulkEnd::hold(DeviceBlock&& taken, bool alive) noexcept {
  Leaving& leaving = leaving_[count_++];
  DeviceBlock& block = leaving.block;
  block = std::move(taken);
  NativeDevice* owner = runtime_.owner_of(block);
  if (owner != nullptr && owner->guard() != nullptr && alive) {
    owner->guard()->check_ending(block, api_);
  }
  if (owner != nullptr && owner->logging() != nullptr) {
    owner->logging()->hold_end(block, action_, api_, leaving.row);
  }
}

void Runtime::BulkEnd::finish(CUresult result) noexcept {
  for (size_t i = 0; i < count_; ++i) {
    DeviceBlock& block = leaving_[i].block;
    NativeDevice* owner = runtime_.owner_of(block);
    if (owner != nullptr && owner->logging() != nullptr) {
      owner->logging()->complete_end(block, action_, api_, leaving_[i].row, result);
    }
    if (result != CUDA_SUCCESS) {
      runtime_.keep(std::move(block));
      continue;
    }
    if (owner != nullptr) {
      owner->ended(block);
      if (PlainSource* source = owner->source_of(block); source != nullptr) {
        source->end_block(block);
      }
    }
  }
  count_ = 0;
}

Runtime::BulkEnd::~BulkEnd() {
  if (leaving_ != nullptr) {
    unmap_state(leaving_, mapped_bytes_);
  }
}

Runtime::ContextEnd::ContextEnd(Runtime& runtime, CUcontext context, std::string_view api, bool alive) noexcept
    : runtime_(runtime), context_(context), leaving_(runtime, action::context_destroyed, api) {
  if (context != nullptr) {
    runtime.begin_guard_end(context, alive, api);
    runtime.each_device([=](NativeDevice& device) { device.native().begin_context_end(context, alive); });
    leaving_.take_if([context](const DeviceBlock& block) { return ends_with(block, context); }, alive);
    runtime.each_guard([=](GuardResource& guard) { guard.suspend_context(context); });
    runtime.each_source([=](PlainSource& source) { source.begin_context_end(context); });
  }
}

void Runtime::ContextEnd::finish(CUresult result) noexcept {
  leaving_.finish(result);
  if (context_ == nullptr) {
    return;
  }
  if (result == CUDA_SUCCESS) {
    runtime_.begin_guard_end(context_, false, "the end of its context");
    runtime_.forget_context(context_);
  } else {
    runtime_.each_source([this](PlainSource& source) { source.context_stays(context_); });
    runtime_.each_guard([this](GuardResource& guard) { guard.context_stays(context_); });
    runtime_.each_device([this](NativeDevice& device) { device.native().finish_context_end(context_, false); });
  }
}

CUresult Runtime::unmap(CUdeviceptr address, size_t bytes, FreeRequest& request, const DriverCall& call) noexcept {
  PhysicalMemory::Unmapped range;
  physical_.unmap(address, bytes, range);
  for (const auto& each : range) {
    if (each.last) {
      begin_handle_end(each.handle);
    }
  }
  uint64_t unused = address;
  CUresult result = CUDA_SUCCESS;
  if (range.ended() == 0) {
    result = call(unused);
  } else if (range.ended() == 1) {
    uint64_t handle = 0;
    for (const auto& each : range) {
      handle = each.last ? each.handle : handle;
    }
    result = end_accounted(handle, Kind::vmm, request, call);
  } else {
    BulkEnd ending(*this, action::deallocate, request.api);
    ending.take_if(
        [&range](const DeviceBlock& block) {
          bool last = false;
          for (const auto& each : range) {
            last = last || (each.last && each.handle == block.ptr);
          }
          return last && (block.kind == Kind::vmm || block.kind == Kind::import);
        },
        true);
    result = call(unused);
    ending.finish(result);
  }
  for (const auto& each : range) {
    if (each.last) {
      finish_handle_end(each.handle, result);
    }
  }
  if (result != CUDA_SUCCESS) {
    physical_.unmap_failed(range);
    return result;
  }
  for (const auto& each : range) {
    record_mapping(action::unmap, each.ptr, each.bytes, each.handle, request.api, request.caller);
  }
  return result;
}

}  // namespace xlog
