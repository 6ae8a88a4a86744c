#include "runtime/library/launch_recorder.h"

#include <new>

#include "runtime/base/diagnostics.h"
#include "runtime/base/thread.h"
#include "runtime/library/device_runtime.h"

namespace xlog {

LaunchRecorder::~LaunchRecorder() {
  if (phase_ == Phase::preflighted && !uses_.empty()) {
    say("a launch was prepared and never committed: its blocks are taken as used");
    static_cast<void>(finish_all(uses_.size()));
  }
}

void LaunchRecorder::add(const DeviceBlock* block, Access access) noexcept {
  if (phase_ != Phase::registering) {
    rejected_ = rejected_.ok() ? Status::stream_misuse("a block was registered after the preflight") : rejected_;
    return;
  }
  if (block == nullptr) {
    if (mode_ == Mode::strict && rejected_.ok()) {
      rejected_ = Status::stream_misuse("a buffer of the launch is no block of the runtime");
    }
    return;
  }
  BlockId id = block->id();
  for (Use& each : uses_) {
    if (each.id == id) {
      each.access = merged(each.access, access);
      return;
    }
  }
  try {
    uses_.push_back({.id = id, .access = access});
  } catch (const std::bad_alloc&) {
    rejected_ = Status::from(CUDA_ERROR_OUT_OF_MEMORY, "no host memory");
  }
}

Status LaunchRecorder::preflight(XlogDeviceRuntime& runtime) noexcept {
  if (phase_ != Phase::registering) {
    return Status::stream_misuse("the recorder was preflighted already");
  }
  if (!rejected_.ok()) {
    return rejected_;
  }
  if (!uses_.empty() && !runtime.supports_block_use_tracking()) {
    return Status::stream_misuse("use tracking is unsupported by this runtime");
  }
  runtime_ = &runtime;
  for (size_t i = 0; i < uses_.size(); ++i) {
    Status status = runtime.prepare_block_use(uses_[i].id, stream_, uses_[i].access);
    if (!status.ok()) {
      static_cast<void>(finish_all(i));  // nothing was launched: to take them as used costs a tick each
      return status;
    }
  }
  phase_ = Phase::preflighted;
  return {};
}

Status LaunchRecorder::finish_all(size_t count) noexcept {
  Status first;
  for (size_t i = 0; i < count; ++i) {
    Status status = runtime_->finish_block_use(uses_[i].id, stream_, uses_[i].access);
    first = first.ok() ? status : first;
  }
  return first;
}

Status LaunchRecorder::commit(XlogDeviceRuntime& runtime) noexcept {
  if (phase_ == Phase::ended) {
    return Status::stream_misuse("the recorder was committed already");
  }
  bool preflighted = phase_ == Phase::preflighted;
  phase_ = Phase::ended;
  if (preflighted && runtime_ != &runtime) {
    static_cast<void>(finish_all(uses_.size()));
    return Status::stream_misuse("the recorder was preflighted with another runtime");
  }
  if (!preflighted) {
    return !rejected_.ok() ? rejected_ : uses_.empty() ? Status() : Status::stream_misuse("the recorder was never preflighted");
  }
  Status status = finish_all(uses_.size());
  if (!status.ok()) {
    static_cast<void>(runtime.wait_for_stream(stream_));
  }
  return status.ok() ? rejected_ : status;
}

}  // namespace xlog
