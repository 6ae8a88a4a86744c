#include "tests/stack/harness.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

namespace stack_tests {

namespace {

template <class Function>
void find(void* library, const char* name, Function& out) {
  out = reinterpret_cast<Function>(dlsym(library, name));
}

}  // namespace

Gpu& Gpu::get() {
  static Gpu gpu = [] {
    Gpu all;
    const char* reason = nullptr;
    all.api = load_driver(&reason);
    BOOST_REQUIRE_MESSAGE(all.api != nullptr, reason);
    void* library = dlopen("libcuda.so.1", RTLD_NOW);
    find(library, "cuMemsetD8Async", all.memset8);
    find(library, "cuMemcpyDtoHAsync_v2", all.to_host);
    find(library, "cuMemcpyDtoH_v2", all.to_host_now);
    find(library, "cuMemcpyHtoD_v2", all.to_device);
    find(library, "cuMemcpyHtoDAsync_v2", all.to_device_async);
    find(library, "cuStreamWaitValue32_v2", all.wait_value);
    find(library, "cuCtxSetCurrent", all.set_current);
    find(library, "xlog_sim_seed", all.sim_seed);
    find(library, "xlog_sim_judge_uses", all.sim_judge);
    find(library, "xlog_sim_set_faults", all.sim_faults);
    return all;
  }();
  return gpu;
}

Gate::Gate(StreamPool& streams) : streams_(streams) {
  DeviceContext::Scope scope(streams.context());
  uint32_t closed = 0;
  BOOST_REQUIRE(Gpu::get().api->cuStreamCreate(&own_, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  BOOST_REQUIRE(Gpu::get().api->cuMemAlloc_v2(&word_, 512) == CUDA_SUCCESS);
  BOOST_REQUIRE(Gpu::get().to_device(word_, &closed, sizeof closed) == CUDA_SUCCESS);
}

Gate::~Gate() {
  open();
  DeviceContext::Scope scope(streams_.context());
  Gpu::get().api->cuMemFree_v2(word_);
  Gpu::get().api->cuStreamDestroy_v2(own_);
}

void Gate::hold(StreamId stream) {
  DeviceContext::Scope scope(streams_.context());
  BOOST_REQUIRE(Gpu::get().wait_value(streams_.resolve(stream), word_, 1, CU_STREAM_WAIT_VALUE_GEQ) == CUDA_SUCCESS);
}

void Gate::open() {
  DeviceContext::Scope scope(streams_.context());
  uint32_t opened = 1;
  Gpu::get().to_device_async(word_, &opened, sizeof opened, own_);
  Gpu::get().api->cuStreamSynchronize(own_);
}

void sync(StreamPool& streams, StreamId id) {
  DeviceContext::Scope scope(streams.context());
  BOOST_REQUIRE(Gpu::get().api->cuStreamSynchronize(streams.resolve(id)) == CUDA_SUCCESS);
}

bool becomes_idle(StreamPool& streams, StreamId id) {
  DeviceContext::Scope scope(streams.context());
  auto until = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (Gpu::get().api->cuStreamQuery(streams.resolve(id)) == CUDA_ERROR_NOT_READY) {
    if (std::chrono::steady_clock::now() > until) {
      return false;
    }
    std::this_thread::yield();
  }
  return true;
}

void fill(StreamPool& streams, StreamId id, const DeviceBlock& block, unsigned char value) {
  DeviceContext::Scope scope(streams.context());
  if (Gpu::get().memset8(block.ptr, value, block.bytes, streams.resolve(id)) != CUDA_SUCCESS) {
    std::fprintf(stderr, "cuMemsetD8Async failed\n");  // Boost's checks are for the main thread
    std::abort();
  }
}

std::vector<unsigned char> read_now(const DeviceBlock& block) {
  std::vector<unsigned char> bytes(block.bytes);
  BOOST_REQUIRE(Gpu::get().to_host_now(bytes.data(), block.ptr, bytes.size()) == CUDA_SUCCESS);
  return bytes;
}

bool all_are(const std::vector<unsigned char>& bytes, unsigned char value) {
  return std::all_of(bytes.begin(), bytes.end(), [value](unsigned char each) { return each == value; });
}

Stack::Stack(std::string which) : name(std::move(which)), streams(*Gpu::get().api, 0), ids{kDefaultStream} {
  Gpu::get().seed(0);
  BOOST_REQUIRE(streams.status().ok());
  for (int i = 0; i < 4; ++i) {
    ids.push_back(streams.acquire().id);
  }
  auto has = [this](const char* part) { return name.find(part) != std::string::npos; };
  top = has("direct") ? static_cast<DeviceMemoryResource*>(&direct.emplace(streams.context())) : &async.emplace(streams);
  if (has("lowbudget")) {
    top = &low_budget.emplace(*top, kTestLimit, ledger);
  }
  if (has("pool")) {
    top = &pool.emplace(*top, streams, PoolOptions{.chunk_bytes = size_t{16} << 10});
  }
  if (has("lowlog")) {
    top = &low_logging.emplace(*top, memory);
  }
  if (has("+budget")) {
    top = &budget.emplace(*top, kTestLimit, ledger);
  }
  if (has("+logging")) {
    top = &logging.emplace(*top, null);
  }
}

Stack::~Stack() { settle(); }

void Stack::settle() {
  for (StreamId id : ids) {
    sync(streams, id);
  }
  BOOST_TEST(top->reap_pending(ReapGoal{.patience_ns = 2'000'000'000}).ok());
}

const std::vector<std::string>& compositions() {
  static const std::vector<std::string> all = {
      "direct",
      "async",
      "direct+pool",
      "async+pool",
      "async+budget",
      "async+budget+logging",
      "async+lowlog+budget",
      "direct+logging",
      "direct+budget",
      "direct+lowbudget+pool",
      "async+lowbudget+pool+logging",
      "async+pool+budget+logging",
  };
  return all;
}

}  // namespace stack_tests
