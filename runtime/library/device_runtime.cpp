#include "runtime/library/device_runtime.h"

#include "runtime/base/driver_api.h"

#include "runtime/library/standard_stack.h"

namespace xlog {

namespace {

Status nothing() noexcept { return Status::stream_misuse("a runtime of nothing"); }

}  // namespace

ResourceResult<XlogDeviceRuntime*> XlogDeviceRuntime::try_get(int ordinal) noexcept {
  ResourceResult<StandardStack*> stack = StandardStack::try_get(ordinal);
  if (!stack.ok()) {
    return stack.status();
  }
  return &stack.value()->runtime();
}

ResourceResult<XlogDeviceRuntime> XlogDeviceRuntime::with_resource(int ordinal, StreamPool& streams,
                                                                   DeviceMemoryResource& resource) noexcept {
  if (!streams.status().ok()) {
    return streams.status();
  }
  if (ordinal != streams.device_ordinal() || ordinal != resource.device_ordinal()) {
    return Status::from(CUDA_ERROR_INVALID_DEVICE, "the streams, the resource and the ordinal are not of one device");
  }
  return XlogDeviceRuntime(streams, resource);
}

ResourceResult<DeviceBlock> XlogDeviceRuntime::allocate(size_t bytes, StreamId stream, AllocTag tag) noexcept {
  DeviceBlock block;
  AllocationRequest request{.bytes = bytes, .stream = stream, .tag = tag, .caller = __builtin_return_address(0)};
  Status status = resource_ != nullptr ? resource_->allocate(request, block) : nothing();
  if (!status.ok()) {
    return status;
  }
  return block;
}

ResourceResult<DeviceBlock> XlogDeviceRuntime::allocate(MemoryReservation& promise, size_t bytes, StreamId stream, AllocTag tag) noexcept {
  DeviceBlock block;
  AllocationRequest request{.bytes = bytes, .stream = stream, .tag = tag, .caller = __builtin_return_address(0), .reservation = &promise};
  Status status = resource_ != nullptr ? resource_->allocate(request, block) : nothing();
  if (!status.ok()) {
    return status;
  }
  return block;
}

Status XlogDeviceRuntime::deallocate(DeviceBlock& block) noexcept {
  return resource_ != nullptr ? resource_->deallocate(block, FreeRequest{.caller = __builtin_return_address(0)}) : nothing();
}

Status XlogDeviceRuntime::reap_pending(const ReapGoal& goal) noexcept {
  return resource_ != nullptr ? resource_->reap_pending(goal) : nothing();
}

ResourceResult<MemoryReservation> XlogDeviceRuntime::reserve_memory(uint64_t bytes) noexcept {
  MemoryReservation promise;
  Status status = resource_ != nullptr ? resource_->reserve_memory(bytes, promise) : nothing();
  if (!status.ok()) {
    return status;
  }
  return promise;
}

Status XlogDeviceRuntime::prepare_block_use(const BlockId& id, StreamId use, Access access) noexcept {
  return resource_ != nullptr ? resource_->prepare_block_use(id, use, access) : nothing();
}

Status XlogDeviceRuntime::finish_block_use(const BlockId& id, StreamId use, Access access) noexcept {
  return resource_ != nullptr ? resource_->finish_block_use(id, use, access) : nothing();
}

Status XlogDeviceRuntime::record_block_use(const DeviceBlock& block, StreamId use) noexcept {
  return resource_ != nullptr ? resource_->record_block_use(block, use) : nothing();
}

Status XlogDeviceRuntime::prepare_first_use(const DeviceBlock* block, StreamId use, Access access) noexcept {
  return block != nullptr ? prepare_block_use(block->id(), use, access) : Status::stream_misuse("the buffer is no block of a runtime");
}

Status XlogDeviceRuntime::finish_first_use(const DeviceBlock* block, StreamId use, Access access) noexcept {
  return block != nullptr ? finish_block_use(block->id(), use, access) : Status::stream_misuse("the buffer is no block of a runtime");
}

Status XlogDeviceRuntime::wait_for_stream(StreamId stream) noexcept {
  CUstream handle = streams_ != nullptr ? streams_->resolve(stream) : nullptr;
  if (handle == nullptr) {
    return Status::stream_misuse("unknown stream");
  }
  DeviceContext::Scope scope(streams_->context());
  return Status::from(streams_->context().driver().cuStreamSynchronize(handle));
}

}  // namespace xlog
