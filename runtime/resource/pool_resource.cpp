#include "runtime/resource/pool_resource.h"

#include <time.h>

#include "runtime/base/system_calls.h"
#include "runtime/base/thread.h"

namespace xlog {

namespace {

constexpr size_t kGranule = size_t{2} << 20;
// Before an allocation gives up, it waits this long for work on what the pool holds.
constexpr uint64_t kPatience = 1'000'000'000;
constexpr size_t kLookAt = 4;

size_t rounded_up(size_t bytes, size_t step) noexcept {
  size_t up = (bytes + step - 1) / step * step;
  return up < bytes ? SIZE_MAX / step * step : up;
}

}  // namespace

PoolResource::PoolResource(DeviceMemoryResource& upstream, StreamPool& streams, const PoolOptions& options) noexcept
    : TrackedResource(streams),
      upstream_(upstream),
      options_(options),
      count_(streams.max_streams() + 1),
      arenas_(static_cast<PoolArena*>(map_kept(count_ * sizeof(PoolArena)))) {}

// What the GPU may still use is left to the upstream as it is: a leak, not a corruption.
PoolResource::~PoolResource() {
  if (arenas_ == nullptr) {
    return;
  }
  bool done = streams_.status().ok();
  uint64_t deadline = steady_time() + 10 * kPatience;
  for (size_t i = 0; done && i <= streams_.non_default_len(); ++i) {
    StreamId id = streams_.id_at(i);
    done = streams_.wait_done(id, streams_.mark(id), deadline);
  }
  for (size_t i = 0; i < count_; ++i) {
    arenas_[i].live.release();
    for (Chunk* chunk = arenas_[i].chunks; done && chunk != nullptr; chunk = chunk->next) {
      static_cast<void>(upstream_.deallocate(chunk->block));
    }
  }
  unmap_state(arenas_, count_ * sizeof(PoolArena));
}

// Under the arena's lock: a node for the cut that the next take may make.
bool PoolResource::has_spare(PoolArena& own) noexcept {
  if (own.spares == nullptr) {
    own.spares = ranges_.get();
  }
  return own.spares != nullptr;
}

bool PoolResource::make_live(PoolArena& own, Range* range, const AllocationRequest& request, DeviceBlock& out) noexcept {
  bool found = false;
  PoolArena::LiveRange* entry = own.live.claim(range->ptr, found);
  if (entry == nullptr) {
    own.give(range, range->tick);
    return false;
  }
  entry->range = range;
  if (own.generations_left == 0) {
    constexpr uint64_t kGenerations = 1024;
    own.next_generation = Generation::reserve(kGenerations).value;
    own.generations_left = kGenerations;
  }
  --own.generations_left;
  range->generation = {own.next_generation++};
  range->requested = request.bytes;
  range->stream = request.stream;
  range->uses.begin(request.stream, streams_.mark(request.stream));
  own.live_bytes.store(own.live_bytes.load(std::memory_order_relaxed) + request.bytes, std::memory_order_relaxed);
  out = DeviceBlock();
  out.ptr = range->ptr;
  out.bytes = request.bytes;
  out.taken = range->bytes;
  out.align = kRangeStep;
  out.generation = range->generation;
  out.tag = request.tag;
  out.alloc_stream = request.stream;
  out.device = static_cast<int16_t>(device_ordinal());
  out.kind = Kind::pool;
  return true;
}

bool PoolResource::take_own(const AllocationRequest& request, size_t bytes, DeviceBlock& out) noexcept {
  PoolArena& own = arena(request.stream);
  LockGuard guard(own.lock);
  Range* range = has_spare(own) ? own.take(bytes) : nullptr;
  return range != nullptr && make_live(own, range, request, out);
}

// A chunk of another stream of which nothing is in use. It is out of both arenas while the driver is asked.
bool PoolResource::adopt_unused(StreamId to, size_t bytes, bool wait_on_gpu) noexcept {
  for (size_t i = 0; i < count_; ++i) {
    PoolArena& from = arenas_[i];
    StreamId id = streams_.id_at(i);
    if (id == to) {
      continue;
    }
    Chunk* chunk = nullptr;
    {
      LockGuard guard(from.lock);
      chunk = from.detach_unused(bytes);
    }
    if (chunk == nullptr) {
      continue;
    }
    Tick tick = chunk->first->tick;
    bool ordered = streams_.is_done(id, tick) || (wait_on_gpu && streams_.order(to, id, tick).ok());
    PoolArena& target = ordered ? arena(to) : from;
    LockGuard guard(target.lock);
    target.attach(chunk, chunk->first, ordered ? streams_.mark(to) : tick);
    if (ordered) {
      return true;
    }
  }
  return false;
}

Status PoolResource::grow(const AllocationRequest& request, size_t bytes) noexcept {
  Chunk* chunk = chunks_.get();
  Range* range = ranges_.get();
  Status status = chunk != nullptr && range != nullptr ? Status() : Status::from(CUDA_ERROR_OUT_OF_MEMORY, "no host memory");
  if (status.ok()) {
    status = upstream_.allocate({.bytes = bytes, .stream = request.stream, .tag = "pool chunk", .caller = request.caller}, chunk->block);
  }
  if (!status.ok()) {
    chunks_.put(chunk);
    ranges_.put(range);
    return status;
  }
  chunk->first = range;
  range->ptr = chunk->block.ptr;
  range->bytes = bytes;
  range->chunk = chunk;
  held_.fetch_add(bytes, std::memory_order_relaxed);
  PoolArena& own = arena(request.stream);
  LockGuard guard(own.lock);
  own.attach(chunk, range, streams_.mark(request.stream));
  return {};
}

// The upstream has no whole chunk more. What is asked for may still be there; then unused memory of other streams, on the
// GPU's time; then everything unused goes back, so that the upstream can make one piece of it; then what waits for uses
// elsewhere is waited for.
Status PoolResource::allocate_under_pressure(const AllocationRequest& request, size_t bytes, DeviceBlock& out) noexcept {
  if (grow(request, bytes).ok() && take_own(request, bytes, out)) {
    return {};
  }
  if (adopt_unused(request.stream, bytes, true) && take_own(request, bytes, out)) {
    return {};
  }
  trim(kPatience);
  static_cast<void>(upstream_.reap_pending(ReapGoal{.bytes = bytes, .patience_ns = kPatience}));
  Status status = grow(request, bytes);
  if (status.ok() && take_own(request, bytes, out)) {
    return {};
  }
  uint64_t deadline = steady_time() + kPatience;
  for (timespec nap{.tv_sec = 0, .tv_nsec = 20'000}; !status.ok() && pending_bytes() != 0 && steady_time() < deadline;) {
    if (settle_all() != 0) {
      if (take_own(request, bytes, out)) {
        return {};
      }
      trim();
      status = grow(request, bytes);
    }
    kernel::sleep(nap);
  }
  return status.ok() && !take_own(request, bytes, out) ? Status::from(CUDA_ERROR_OUT_OF_MEMORY) : status;
}

Status PoolResource::allocate(const AllocationRequest& request, DeviceBlock& out) noexcept {
  out.ptr = 0;
  if (request.bytes == 0) {
    return Status::from(CUDA_ERROR_INVALID_VALUE, "zero bytes");
  }
  if (!streams_.status().ok()) {
    return streams_.status();
  }
  if (streams_.resolve(request.stream) == nullptr) {
    return Status::stream_misuse("unknown stream");
  }
  if (arenas_ == nullptr) {
    return Status::from(CUDA_ERROR_OUT_OF_MEMORY, "no host memory");
  }
  PoolArena& own = arena(request.stream);
  if (own.waiting.size() != 0) {
    settle_waiting(own, request.stream, kLookAt);
  }
  size_t bytes = rounded_up(request.bytes, kRangeStep);
  if (take_own(request, bytes, out)) {
    return {};
  }
  if (adopt_unused(request.stream, bytes, false) && take_own(request, bytes, out)) {
    return {};
  }
  size_t step = options_.chunk_bytes < kGranule ? kRangeStep : kGranule;
  size_t chunk = rounded_up(bytes > options_.chunk_bytes ? bytes : options_.chunk_bytes, step);
  if (grow(request, chunk).ok() && take_own(request, bytes, out)) {
    return {};
  }
  return allocate_under_pressure(request, bytes, out);
}

Status PoolResource::deallocate(DeviceBlock& block, const FreeRequest&) noexcept {
  Status status = check_block(block);
  if (!status.ok()) {
    return status;
  }
  if (arenas_ == nullptr) {
    return Status::use_after_free(block.generation);
  }
  PoolArena& own = arena(block.alloc_stream);
  Range* waits = nullptr;
  {
    LockGuard guard(own.lock);
    PoolArena::LiveRange* entry = own.live.find(block.ptr);
    if (entry == nullptr || entry->range->generation != block.generation) {
      return Status::use_after_free(block.generation);
    }
    Range* range = entry->range;
    if (range->requested != block.bytes) {
      return Status::stream_misuse("the block's size is not the one it was allocated with");
    }
    own.live.erase(entry);
    own.live_bytes.store(own.live_bytes.load(std::memory_order_relaxed) - range->requested, std::memory_order_relaxed);
    range->generation = {};
    range->waits_for = range->uses.close(streams_);
    if (range->waits_for == nullptr) {
      own.give(range, streams_.mark(block.alloc_stream));
      block.state = BlockState::freed;
      return {};
    }
    own.waiting_bytes.fetch_add(range->requested, std::memory_order_relaxed);
    waits = range;
  }
  own.waiting.push(waits);
  block.state = BlockState::retired;
  settle_waiting(own, block.alloc_stream, kLookAt);
  return {};
}

uint64_t PoolResource::settle_waiting(PoolArena& own, StreamId id, size_t most) noexcept {
  uint64_t settled = 0;
  own.waiting.look(most, [&](Range* range) {
    StreamUse* uses = range->waits_for;
    if (!uses_done(streams_, uses)) {
      return false;
    }
    settled += range->requested;
    {
      LockGuard guard(own.lock);
      range->waits_for = nullptr;
      own.waiting_bytes.fetch_sub(range->requested, std::memory_order_relaxed);
      own.give(range, streams_.mark(id));
    }
    notes_.put_list(uses);
    return true;
  });
  if (settled != 0) {  // not a line that all threads write for nothing
    released_.fetch_add(settled, std::memory_order_acq_rel);
  }
  return settled;
}

uint64_t PoolResource::settle_all() noexcept {
  uint64_t settled = 0;
  for (size_t i = 0; i < count_; ++i) {
    settled += settle_waiting(arenas_[i], streams_.id_at(i), arenas_[i].waiting.size());
  }
  return settled;
}

Status PoolResource::reap_pending(const ReapGoal& goal) noexcept {
  if (arenas_ == nullptr) {
    return {};
  }
  uint64_t deadline = steady_time() + goal.patience_ns;
  uint64_t freed = settle_all();
  for (timespec nap{.tv_sec = 0, .tv_nsec = 20'000};
       freed < goal.bytes && pending_bytes() != 0 && goal.patience_ns != 0 && steady_time() < deadline && streams_.fault().ok();) {
    kernel::sleep(nap);
    freed += settle_all();
  }
  Status status = upstream_.reap_pending(ReapGoal{});
  return status.ok() ? streams_.fault() : status;
}

uint64_t PoolResource::give_back_unused(PoolArena& from, StreamId id, uint64_t deadline) noexcept {
  uint64_t bytes = 0;
  for (;;) {
    Chunk* chunk = nullptr;
    {
      LockGuard guard(from.lock);
      chunk = from.detach_unused(0);
    }
    if (chunk == nullptr) {
      return bytes;
    }
    uint64_t held = chunk->block.bytes;
    Tick tick = chunk->first->tick;
    if (!streams_.wait_done(id, tick, deadline) || !upstream_.deallocate(chunk->block).ok()) {
      LockGuard guard(from.lock);
      from.attach(chunk, chunk->first, tick);
      return bytes;
    }
    held_.fetch_sub(held, std::memory_order_relaxed);
    bytes += held;
    ranges_.put(chunk->first);
    chunks_.put(chunk);
  }
}

uint64_t PoolResource::trim(uint64_t patience_ns) noexcept {
  if (arenas_ == nullptr) {
    return 0;
  }
  settle_all();
  uint64_t deadline = patience_ns == 0 ? 0 : steady_time() + patience_ns;
  uint64_t bytes = 0;
  for (size_t i = 0; i < count_; ++i) {
    bytes += give_back_unused(arenas_[i], streams_.id_at(i), deadline);
  }
  return bytes;
}

uint64_t PoolResource::bytes_outstanding() const noexcept {
  uint64_t bytes = 0;
  for (size_t i = 0; arenas_ != nullptr && i < count_; ++i) {
    bytes += arenas_[i].live_bytes.load(std::memory_order_relaxed) + arenas_[i].waiting_bytes.load(std::memory_order_relaxed);
  }
  return bytes;
}

uint64_t PoolResource::pending_bytes() const noexcept {
  uint64_t bytes = 0;
  for (size_t i = 0; arenas_ != nullptr && i < count_; ++i) {
    bytes += arenas_[i].waiting_bytes.load(std::memory_order_relaxed);
  }
  return bytes;
}

void PoolResource::with_uses(const BlockId& id, UsesVisitor& visitor) noexcept {
  if (arenas_ == nullptr) {
    visitor.visit(nullptr);
    return;
  }
  PoolArena& own = arena(id.alloc_stream);
  LockGuard guard(own.lock);
  PoolArena::LiveRange* entry = own.live.find(id.ptr);
  bool same = entry != nullptr && entry->range->generation == id.generation;
  visitor.visit(same ? &entry->range->uses : nullptr);
}

}  // namespace xlog
