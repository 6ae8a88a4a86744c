// What the tests of the stack run on: a real GPU or the simulated driver, whichever libcuda.so.1 is found; the stacks that
// the one conformance suite runs over; and a gate, which holds a stream until the test opens it.
#pragma once

#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/driver_api.h"
#include "runtime/library/device_runtime.h"
#include "runtime/library/driver_loader.h"
#include "runtime/library/sinks.h"
#include "runtime/resource/async_cuda_resource.h"
#include "runtime/resource/direct_cuda_resource.h"
#include "runtime/resource/global_device_budget.h"
#include "runtime/resource/logging_resource.h"
#include "runtime/resource/pool_resource.h"

namespace stack_tests {

using namespace xlog;

// The driver calls that a program makes, and the simulator's own exports where they are there.
struct Gpu {
  const DriverApi* api = nullptr;
  CUresult (*memset8)(CUdeviceptr, unsigned char, size_t, CUstream) = nullptr;
  CUresult (*to_host)(void*, CUdeviceptr, size_t, CUstream) = nullptr;
  CUresult (*to_device)(CUdeviceptr, const void*, size_t) = nullptr;
  CUresult (*to_device_async)(CUdeviceptr, const void*, size_t, CUstream) = nullptr;
  CUresult (*to_host_now)(void*, CUdeviceptr, size_t) = nullptr;
  CUresult (*wait_value)(CUstream, CUdeviceptr, cuuint32_t, unsigned) = nullptr;
  CUresult (*set_current)(CUcontext) = nullptr;
  void (*sim_seed)(unsigned) = nullptr;
  void (*sim_judge)(bool) = nullptr;
  void (*sim_faults)(const char*) = nullptr;

  static Gpu& get();
  [[nodiscard]] bool simulated() const { return sim_seed != nullptr; }
  // Whether the simulated driver ends the process at a use that is out of order.
  void judge_uses(bool judge) const {
    if (sim_judge != nullptr) {
      sim_judge(judge);
    }
  }
  // The next schedule of the simulator; nothing on a GPU, where each run has its own.
  void seed(unsigned value) const {
    if (sim_seed != nullptr) {
      sim_seed(value);
    }
  }
};

// Makes the primary context current in this thread, as a program that uses the GPU does.
class Current {
 public:
  explicit Current(const StreamPool& streams) { Gpu::get().set_current(streams.context().handle()); }
};

// Holds what is enqueued after hold() on a stream until open().
class Gate {
 public:
  explicit Gate(StreamPool& streams);
  ~Gate();
  void hold(StreamId stream);
  void open();

 private:
  StreamPool& streams_;
  CUdeviceptr word_ = 0;
  CUstream own_ = nullptr;  // opening must not queue behind what is held
};

inline CUstream handle(StreamPool& streams, StreamId id) { return streams.resolve(id); }
void sync(StreamPool& streams, StreamId id);
// True when the stream becomes idle within two seconds.
bool becomes_idle(StreamPool& streams, StreamId id);
void fill(StreamPool& streams, StreamId id, const DeviceBlock& block, unsigned char value);
std::vector<unsigned char> read_now(const DeviceBlock& block);
bool all_are(const std::vector<unsigned char>& bytes, unsigned char value);

// One way to stack resources.
struct Stack {
  std::string name;
  StreamPool streams;
  std::vector<StreamId> ids;  // the default stream, and four more
  std::optional<DirectCudaResource> direct;
  std::optional<AsyncCudaResource> async;
  DeviceLedger ledger;
  NullSink null;
  InMemorySink memory;
  std::optional<GlobalDeviceBudget> low_budget;  // below a pool
  std::optional<PoolResource> pool;
  std::optional<LoggingResource> low_logging;
  std::optional<GlobalDeviceBudget> budget;
  std::optional<LoggingResource> logging;
  DeviceMemoryResource* top = nullptr;

  explicit Stack(std::string which);
  ~Stack();
  [[nodiscard]] bool tracks() const { return top->supports_block_use_tracking(); }
  // All streams done and everything settled.
  void settle();
};
inline constexpr uint64_t kTestLimit = uint64_t{256} << 20;

// "direct", "async", and from the leaf up: "async+pool+budget+logging".
const std::vector<std::string>& compositions();

inline Status status_of(ResourceResult<DeviceBlock>&& result) { return result.status(); }

}  // namespace stack_tests
