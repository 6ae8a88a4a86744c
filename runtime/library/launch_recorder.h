// Orders one launch against all other uses of the blocks that it touches. Register the blocks, preflight, enqueue the
// work on the launch stream, commit. Specification, section 2b. For one thread at a time.
#pragma once

#include <vector>

#include "runtime/resource/memory_resource.h"

namespace xlog {

class XlogDeviceRuntime;

class LaunchRecorder {
 public:
  enum class Mode : uint8_t {
    permissive,  // buffers that are no blocks of the runtime are left to the caller
    strict,      // they are an error, told by preflight and commit
  };

  LaunchRecorder(StreamId launch_stream, Mode mode) noexcept : stream_(launch_stream), mode_(mode) {}
  // Uses that were prepared and never committed are closed as if they had been launched; a message says so.
  ~LaunchRecorder();
  LaunchRecorder(const LaunchRecorder&) = delete;
  LaunchRecorder& operator=(const LaunchRecorder&) = delete;

  // nullptr: a buffer that the runtime does not own. No reference is kept.
  void read(const DeviceBlock* block) noexcept { add(block, Access::read); }
  void write(const DeviceBlock* block) noexcept { add(block, Access::write); }
  void read_write(const DeviceBlock* block) noexcept { add(block, Access::read_write); }

  // Before the work is enqueued: waits are put on the launch stream. When one block fails, those before it are closed.
  Status preflight(XlogDeviceRuntime& runtime) noexcept;
  // After it was enqueued. Ends the recorder. When a use cannot be kept, the launch stream is waited for instead, so that
  // the work is never unprotected, and the error is returned.
  Status commit(XlogDeviceRuntime& runtime) noexcept;

 private:
  enum class Phase : uint8_t { registering, preflighted, ended };
  struct Use {
    BlockId id;
    Access access;
  };

  void add(const DeviceBlock* block, Access access) noexcept;
  Status finish_all(size_t count) noexcept;

  const StreamId stream_;
  const Mode mode_;
  Phase phase_ = Phase::registering;
  XlogDeviceRuntime* runtime_ = nullptr;  // of the preflight
  Status rejected_;
  std::vector<Use> uses_;  // each block once, in the order it was first seen
};

}  // namespace xlog
