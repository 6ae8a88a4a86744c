#include "runtime/resource/pool_source.h"

#include "runtime/base/memory_map.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

namespace {

constexpr uint64_t kGranule = 2 << 20;

}  // namespace

CUmemoryPool PoolSource::pool() noexcept {
  CUmemoryPool known = pool_.load(std::memory_order_acquire);
  if (known != nullptr || unusable_.load(std::memory_order_relaxed)) {
    return known;
  }
  LockGuard guard(lock_);
  known = pool_.load(std::memory_order_relaxed);
  if (known != nullptr) {
    return known;
  }
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device_;
  CUmemoryPool made = nullptr;
  int off = 0;
  cuuint64_t all = UINT64_MAX;  // what is held is bounded here: the driver's threshold counts what is in use as well
  bool good = driver_.cuMemPoolCreate(&made, &properties) == CUDA_SUCCESS &&
              driver_.cuMemPoolSetAttribute(made, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &off) == CUDA_SUCCESS &&
              driver_.cuMemPoolSetAttribute(made, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all) == CUDA_SUCCESS;
  if (!good) {
    unusable_.store(true, std::memory_order_relaxed);
    return nullptr;
  }
  pool_.store(made, std::memory_order_release);
  return made;
}

uint64_t PoolSource::reserved_now() noexcept {
  CUmemoryPool known = pool_.load(std::memory_order_acquire);
  cuuint64_t bytes = 0;
  if (known != nullptr) {
    RelaxedCapture relaxed(driver_);
    driver_.cuMemPoolGetAttribute(known, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes);
  }
  return bytes;
}

CUresult PoolSource::allocate_on(ContextLane& lane, size_t bytes, CUdeviceptr& ptr) noexcept {
  CUdeviceptr made = 0;
  CUresult result = driver_.cuMemAllocFromPoolAsync(&made, bytes, pool_.load(std::memory_order_relaxed), lane.stream);
  if (result != CUDA_SUCCESS) {
    return result;
  }
  result = driver_.cuStreamSynchronize(lane.stream);
  if (result != CUDA_SUCCESS) {
    driver_.cuMemFreeAsync(made, lane.stream);
    return result;
  }
  ptr = made;
  return CUDA_SUCCESS;
}

bool PoolSource::allocate(CUcontext context, size_t bytes, CUdeviceptr& ptr) noexcept {
  if (bytes == 0 || is_exiting() || gate_.is_capturing() || peers_.load(std::memory_order_relaxed) || pool() == nullptr) {
    return false;
  }
  if (settings_.ordered) {
    settle({});
  }
  CUresult result = CUDA_ERROR_INVALID_CONTEXT;
  {
    RelaxedCapture relaxed(driver_);
    ContextLanes::Use lane = lanes_.open(driver_, context, true);
    if (!lane) {
      return false;
    }
    result = allocate_on(*lane, bytes, ptr);
    if (result == CUDA_ERROR_OUT_OF_MEMORY && relieve()) {
      result = allocate_on(*lane, bytes, ptr);
    }
  }
  if (result != CUDA_SUCCESS) {
    return false;
  }
  in_use(plain_taken(bytes));
  note_growth(used());
  if (orphan_ != nullptr) {
    free_orphans();
  }
  return true;
}

CUresult PoolSource::free(const DeviceBlock& block, bool& pending) noexcept {
  pending = false;
  ContextLanes::Use lane = is_exiting() ? ContextLanes::Use(nullptr) : lanes_.find(block.context);
  if (!lane) {
    not_in_use(block.taken);
    return driver_.cuMemFree_v2(block.ptr);
  }
  CUresult result = CUDA_SUCCESS;
  bool capturing = false;
  if (settings_.ordered) {
    held_.add(block.ptr);
    result = free_in_order(*lane, cost(block), reinterpret_cast<void*>(block.ptr), capturing);
    pending = !capturing && result == CUDA_SUCCESS;
    if (!pending) {
      held_.remove(block.ptr);
    }
  } else {
    result = wait_for_context(*lane, capturing);
  }
  if (capturing) {
    result = wait_while_capturing();
  }
  if (result == CUDA_SUCCESS && !pending) {
    RelaxedCapture relaxed(driver_);
    result = driver_.cuMemFreeAsync(block.ptr, lane->stream);
  }
  if (result == CUDA_SUCCESS) {
    not_in_use(block.taken);
    keep_within_bounds();
  }
  return result;
}

void PoolSource::memory_is_free(ContextLane& lane, void* what) noexcept {
  auto ptr = reinterpret_cast<CUdeviceptr>(what);
  held_.remove(ptr);
  if (lane.stream == nullptr || driver_.cuMemFreeAsync(ptr, lane.stream) != CUDA_SUCCESS) {
    add_orphan(ptr);
  }
}

void PoolSource::note_growth(uint64_t used) noexcept {
  if (used > reserved_.load(std::memory_order_relaxed)) {
    uint64_t real = reserved_now();
    reserved_.store(real > used ? real : used, std::memory_order_relaxed);
  }
}

// Trims only when what is held has grown past its bound, and then by an eighth more, so that it is not done at each free.
void PoolSource::keep_within_bounds() noexcept {
  uint64_t taken = used() + not_done();
  uint64_t keep = may_keep(taken);
  if (reserved_.load(std::memory_order_relaxed) <= taken + keep) {
    return;
  }
  uint64_t real = reserved_now();
  uint64_t target = taken + keep - keep / 8;
  if (real > taken + keep) {
    RelaxedCapture relaxed(driver_);
    driver_.cuMemPoolTrimTo(pool_.load(std::memory_order_relaxed), target);
    real = target;
  }
  reserved_.store(real, std::memory_order_relaxed);
}

bool PoolSource::relieve() noexcept {
  CUmemoryPool known = pool_.load(std::memory_order_acquire);
  if (known == nullptr || is_exiting()) {
    return false;
  }
  uint64_t before = reserved_now();
  settle({.patience_ns = 1});
  RelaxedCapture relaxed(driver_);
  lanes_.each([this](ContextLane& lane) { driver_.cuStreamSynchronize(lane.stream); });
  driver_.cuMemPoolTrimTo(known, 0);
  uint64_t after = reserved_now();
  reserved_.store(after, std::memory_order_relaxed);
  return after < before;
}

uint64_t PoolSource::idle_bytes() noexcept {
  if (is_exiting()) {
    return 0;
  }
  uint64_t reserved = reserved_now();
  uint64_t taken = used();
  // In the steps in which plain memory comes and goes: a program does not see small blocks one by one.
  return reserved > taken ? (reserved - taken) / kGranule * kGranule : 0;
}

// Work that still reads the blocks may be running: the driver's call waits for it, so does this.
void PoolSource::begin_context_end(CUcontext context, bool alive) noexcept {
  ContextLanes::Use lane = alive && !is_exiting() ? lanes_.find(context) : ContextLanes::Use(nullptr);
  if (lane) {
    bool capturing = false;
    wait_for_context(*lane, capturing);
    settle({});
  }
}

void PoolSource::end_block(const DeviceBlock& block, bool alive) noexcept {
  ContextLanes::Use lane = alive && !is_exiting() ? lanes_.find(block.context) : ContextLanes::Use(nullptr);
  RelaxedCapture relaxed(driver_);
  if (!lane || driver_.cuMemFreeAsync(block.ptr, lane->stream) != CUDA_SUCCESS) {
    add_orphan(block.ptr);
  }
  not_in_use(block.taken);
}

void PoolSource::finish_context_end(CUcontext context) noexcept { close_lane(context); }

void PoolSource::add_orphan(CUdeviceptr ptr) noexcept {
  LockGuard guard(lock_);
  if (orphan_ == nullptr) {
    orphan_ = static_cast<CUdeviceptr*>(map_state(kOrphans * sizeof(CUdeviceptr)));
  }
  if (orphan_ != nullptr && orphans_ < kOrphans) {
    orphan_[orphans_++] = ptr;
  }
}

// In a context that lives: the driver frees pool memory by its address alone, and waits for nothing.
void PoolSource::free_orphans() noexcept {
  for (;;) {
    CUdeviceptr ptr = 0;
    {
      LockGuard guard(lock_);
      if (orphans_ == 0) {
        return;
      }
      ptr = orphan_[--orphans_];
    }
    RelaxedCapture relaxed(driver_);
    driver_.cuMemFree_v2(ptr);
  }
}

}  // namespace xlog
