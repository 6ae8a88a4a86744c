// One runtime for one GPU ordinal: the stack, its streams, and the operations on both. Specification, section 8.
// Thread-safe: operations on different blocks do not wait for each other here; each resource below sees to itself.
#pragma once

#include "runtime/resource/memory_reservation.h"
#include "runtime/resource/memory_resource.h"
#include "runtime/resource/stream_pool.h"

namespace xlog {

inline constexpr size_t kMaxDeviceOrdinals = kMaxDevices;  // 16

class XlogDeviceRuntime {
 public:
  // The process's runtime of a GPU, made by the first call from the XLOG_ options of the environment: logging -> budget
  // -> async, or direct where XLOG_BACKEND says so or the device has no memory pools. Lives as long as the process. One
  // is built a device, whoever comes first; a failure is told, and tried again by the next call.
  static ResourceResult<XlogDeviceRuntime*> try_get(int ordinal) noexcept;

  // A runtime over a stack of your own, which must outlive it; the three must be of one device.
  static ResourceResult<XlogDeviceRuntime> with_resource(int ordinal, StreamPool& streams, DeviceMemoryResource& resource) noexcept;

  XlogDeviceRuntime() noexcept = default;  // of nothing: every call is StreamMisuse

  [[nodiscard]] int device_ordinal() const noexcept { return streams_ != nullptr ? streams_->device_ordinal() : -1; }
  [[nodiscard]] StreamPool& streams() noexcept { return *streams_; }
  [[nodiscard]] DeviceMemoryResource& resource() noexcept { return *resource_; }

  ResourceResult<DeviceBlock> allocate(size_t bytes, StreamId stream = kDefaultStream, AllocTag tag = kUntagged) noexcept;
  // From what was promised: see reserve_memory.
  ResourceResult<DeviceBlock> allocate(MemoryReservation& promise, size_t bytes, StreamId stream = kDefaultStream,
                                       AllocTag tag = kUntagged) noexcept;
  Status deallocate(DeviceBlock& block) noexcept;
  [[nodiscard]] uint64_t bytes_outstanding() const noexcept { return resource_ != nullptr ? resource_->bytes_outstanding() : 0; }
  Status reap_pending(const ReapGoal& goal = {}) noexcept;
  // Promises `bytes` of the budget for several allocations together.
  ResourceResult<MemoryReservation> reserve_memory(uint64_t bytes) noexcept;

  [[nodiscard]] bool supports_block_use_tracking() const noexcept {
    return resource_ != nullptr && resource_->supports_block_use_tracking();
  }
  Status prepare_block_use(const BlockId& id, StreamId use, Access access) noexcept;
  Status finish_block_use(const BlockId& id, StreamId use, Access access) noexcept;
  Status record_block_use(const DeviceBlock& block, StreamId use) noexcept;

  // For a buffer that is first written on another stream than it was allocated on, before any recorder sees it. nullptr: a
  // buffer that is no block of a runtime, which is an error here.
  Status prepare_first_use(const DeviceBlock* block, StreamId use, Access access) noexcept;
  Status finish_first_use(const DeviceBlock* block, StreamId use, Access access) noexcept;

  // Waits on the host for all work that is enqueued there now.
  Status wait_for_stream(StreamId stream) noexcept;

 private:
  XlogDeviceRuntime(StreamPool& streams, DeviceMemoryResource& resource) noexcept : streams_(&streams), resource_(&resource) {}

  StreamPool* streams_ = nullptr;
  DeviceMemoryResource* resource_ = nullptr;
};

}  // namespace xlog
