#include "runtime/resource/async_cuda_resource.h"

#include <time.h>

#include "runtime/base/driver_api.h"
#include "runtime/base/system_calls.h"
#include "runtime/base/thread.h"

namespace xlog {

namespace {

// Before an allocation gives up, it waits this long for frees that stand in streams.
constexpr uint64_t kPatience = 1'000'000'000;
// Deferred blocks that a call looks at on its way.
constexpr size_t kLookAt = 4;

}  // namespace

AsyncCudaResource::~AsyncCudaResource() {
  shutdown(kShutdownPatience);
  CUmemoryPool pool = pool_.load(std::memory_order_acquire);
  if (pool != nullptr) {
    DeviceContext::Scope scope(streams_.context());
    streams_.context().driver().cuMemPoolDestroy(pool);
  }
  live_.release();
}

// A pool of its own: reuse across streams that would make one wait for the other is off.
Status AsyncCudaResource::make_pool() noexcept {
  const DriverApi& driver = streams_.context().driver();
  DeviceContext::Scope scope(streams_.context());
  LockGuard guard(pool_lock_);
  if (pool_.load(std::memory_order_relaxed) != nullptr) {
    return {};
  }
  if (!streams_.context().supports_pools()) {
    return Status::from(CUDA_ERROR_NOT_SUPPORTED, "the device has no memory pools");
  }
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device_ordinal()};
  CUmemoryPool pool = nullptr;
  CUresult result = driver.cuMemPoolCreate(&pool, &properties);
  if (result != CUDA_SUCCESS) {
    return Status::from(result, "creating a memory pool");
  }
  int off = 0;
  cuuint64_t threshold = options_.release_threshold;
  driver.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off);
  driver.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold);
  pool_.store(pool, std::memory_order_release);
  return {};
}

Status AsyncCudaResource::ready() noexcept {
  if (!streams_.status().ok()) {
    return streams_.status();
  }
  if (closed_.load(std::memory_order_acquire)) {
    return Status::stream_misuse("the resource is shut down");
  }
  if (!frees_.ready()) {
    return Status::from(CUDA_ERROR_OUT_OF_MEMORY, "no host memory");
  }
  return pool_.load(std::memory_order_acquire) != nullptr ? Status() : make_pool();
}

// Out of memory: what is pending is waited for, and what the pool keeps is given back, before the refusal is passed on.
CUresult AsyncCudaResource::allocate_memory(size_t bytes, CUstream stream, CUdeviceptr& ptr) noexcept {
  const DriverApi& driver = streams_.context().driver();
  CUmemoryPool pool = pool_.load(std::memory_order_acquire);
  CUresult result = driver.cuMemAllocFromPoolAsync(&ptr, bytes, pool, stream);
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    static_cast<void>(reap_pending(ReapGoal{.patience_ns = kPatience}));
    driver.cuMemPoolTrimTo(pool, 0);
    result = driver.cuMemAllocFromPoolAsync(&ptr, bytes, pool, stream);
  }
  return result;
}

// The driver gave the address of a live block out again: somebody freed that one past us.
void AsyncCudaResource::forget_unseen(const Live& ended) noexcept {
  BlockUses uses = ended.uses;
  notes_.put_list(uses.close(streams_));
  outstanding_.fetch_sub(cost(ended.bytes), std::memory_order_acq_rel);
  released_.fetch_add(cost(ended.bytes), std::memory_order_acq_rel);
}

Status AsyncCudaResource::allocate(const AllocationRequest& request, DeviceBlock& out) noexcept {
  out.ptr = 0;
  if (request.bytes == 0) {
    return Status::from(CUDA_ERROR_INVALID_VALUE, "zero bytes");
  }
  Status status = ready();
  if (!status.ok()) {
    return status;
  }
  CUstream stream = streams_.resolve(request.stream);
  if (stream == nullptr) {
    return Status::stream_misuse("unknown stream");
  }
  if (deferred_.size() != 0) {
    static_cast<void>(free_deferred(kLookAt));
  }
  DeviceContext::Scope scope(streams_.context());
  CUdeviceptr ptr = 0;
  CUresult result = allocate_memory(request.bytes, stream, ptr);
  if (result != CUDA_SUCCESS) {
    return Status::from(result);
  }
  Live entry;
  entry.ptr = ptr;
  entry.bytes = request.bytes;
  entry.generation = Generation::next();
  entry.stream = request.stream;
  entry.uses.begin(request.stream, streams_.mark(request.stream));
  Live ended;
  if (live_.insert(Live(entry), ended)) {
    if (ended.generation == entry.generation) {
      streams_.context().driver().cuMemFreeAsync(ptr, stream);
      return Status::from(CUDA_ERROR_OUT_OF_MEMORY, "no host memory");
    }
    forget_unseen(ended);
  }
  outstanding_.fetch_add(cost(request.bytes), std::memory_order_acq_rel);
  hand_out(out, request, entry, device_ordinal(), Kind::pool);
  out.pool = pool_.load(std::memory_order_relaxed);
  return {};
}

// Counted as pending once it stands in the stream, not before.
CUresult AsyncCudaResource::free_now(uint64_t ptr, StreamId stream, uint64_t bytes) noexcept {
  DeviceContext::Scope scope(streams_.context());
  CUresult result = streams_.context().driver().cuMemFreeAsync(ptr, streams_.resolve(stream));
  if (result == CUDA_SUCCESS) {
    frees_.add(stream, streams_.mark(stream), bytes);
  }
  return result;
}

// The block is in no table any more. On failure it is as it was, and its uses are still the caller's.
Status AsyncCudaResource::release(uint64_t ptr, StreamId stream, uint64_t bytes, StreamUse* uses) noexcept {
  if (uses_done(streams_, uses)) {
    CUresult result = free_now(ptr, stream, bytes);
    if (result == CUDA_SUCCESS) {
      notes_.put_list(uses);
    }
    return Status::from(result);
  }
  Deferred* node = deferred_nodes_.get();
  if (node == nullptr) {
    return Status::from(CUDA_ERROR_OUT_OF_MEMORY, "no host memory");
  }
  *node = {.ptr = ptr, .cost = bytes, .stream = stream, .uses = uses, .next = nullptr};
  deferred_bytes_.fetch_add(bytes, std::memory_order_acq_rel);
  deferred_.push(node);
  return {};
}

Status AsyncCudaResource::deallocate(DeviceBlock& block, const FreeRequest&) noexcept {
  Status status = check_block(block);
  if (!status.ok()) {
    return status;
  }
  Live entry;
  status = take_live(live_, block, entry);
  if (!status.ok()) {
    return status;
  }
  StreamUse* uses = entry.uses.close(streams_);
  status = release(block.ptr, entry.stream, cost(entry.bytes), uses);
  if (!status.ok()) {
    entry.uses.reopen(uses);
    Live ended;
    live_.insert(Live(entry), ended);
    return status;
  }
  block.state = BlockState::retired;
  if (deferred_.size() != 0) {
    static_cast<void>(free_deferred(kLookAt));
  }
  return {};
}

Status AsyncCudaResource::free_deferred(size_t most) noexcept {
  Status first;
  deferred_.look(most, [&](Deferred* node) {
    if (!uses_done(streams_, node->uses)) {
      return false;
    }
    CUresult result = free_now(node->ptr, node->stream, node->cost);
    if (result != CUDA_SUCCESS) {
      first = first.ok() ? Status::from(result) : first;
      return false;
    }
    notes_.put_list(node->uses);
    deferred_bytes_.fetch_sub(node->cost, std::memory_order_acq_rel);
    deferred_nodes_.put(node);
    return true;
  });
  return first;
}

void AsyncCudaResource::collect_frees(uint64_t& freed) noexcept {
  uint64_t bytes = frees_.settle();
  outstanding_.fetch_sub(bytes, std::memory_order_acq_rel);
  released_.fetch_add(bytes, std::memory_order_acq_rel);
  freed += bytes;
}

Status AsyncCudaResource::reap_pending(const ReapGoal& goal) noexcept {
  if (!frees_.ready()) {
    return {};
  }
  uint64_t deadline = steady_time() + goal.patience_ns;
  uint64_t freed = 0;
  for (timespec nap{.tv_sec = 0, .tv_nsec = 10'000};;) {
    Status status = free_deferred(deferred_.size());
    collect_frees(freed);
    if (status.ok()) {
      status = streams_.fault();
    }
    if (!status.ok() || freed >= goal.bytes || pending_bytes() == 0 || goal.patience_ns == 0 || steady_time() >= deadline) {
      return status;
    }
    kernel::sleep(nap);
    nap.tv_nsec = nap.tv_nsec < 1'000'000 ? nap.tv_nsec * 2 : nap.tv_nsec;
  }
}

uint64_t AsyncCudaResource::take_pending(const AllocationRequest& request, uint64_t bytes) noexcept {
  if (!frees_.ready() || streams_.resolve(request.stream) == nullptr) {
    return 0;
  }
  uint64_t taken = frees_.take(request.stream, bytes);
  outstanding_.fetch_sub(taken, std::memory_order_acq_rel);
  return taken;
}

void AsyncCudaResource::return_pending(const AllocationRequest& request, uint64_t bytes) noexcept {
  outstanding_.fetch_add(bytes, std::memory_order_acq_rel);
  frees_.add(request.stream, streams_.mark(request.stream), bytes);
}

void AsyncCudaResource::with_uses(const BlockId& id, UsesVisitor& visitor) noexcept {
  live_.visit(id.ptr, [&](Live* found) {
    bool same = found != nullptr && found->generation == id.generation;
    visitor.visit(same ? &found->uses : nullptr);
    return false;
  });
}

int AsyncCudaResource::pending_use_count(uint64_t ptr) noexcept {
  int count = -1;
  live_.visit(ptr, [&](Live* found) {
    count = found != nullptr ? static_cast<int>(found->uses.count()) : -1;
    return false;
  });
  return count;
}

AsyncCudaResource::Leaks AsyncCudaResource::shutdown(uint64_t patience_ns) noexcept {
  if (closed_.exchange(true, std::memory_order_acq_rel)) {
    return leaks_;
  }
  constexpr size_t kAtOnce = 32;
  Live taken[kAtOnce];
  for (size_t count = kAtOnce; count == kAtOnce;) {
    count = live_.take_if([](const Live&) { return true; }, taken, kAtOnce);
    for (size_t i = 0; i < count; ++i) {
      ++leaks_.blocks;
      leaks_.bytes += taken[i].bytes;
      static_cast<void>(release(taken[i].ptr, taken[i].stream, cost(taken[i].bytes), taken[i].uses.close(streams_)));
    }
  }
  static_cast<void>(reap_pending(ReapGoal{.patience_ns = patience_ns}));
  leaks_.unsettled_bytes = bytes_outstanding();
  return leaks_;
}

}  // namespace xlog
