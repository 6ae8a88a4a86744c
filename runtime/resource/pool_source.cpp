#include "runtime/resource/pool_source.h"

#include "runtime/base/ask.h"
#include "runtime/base/memory_map.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

namespace {

constexpr uint64_t kGranule = 2 << 20;
// Blocks up to this, and so many of them, are kept one by one: a request of the same size then needs no driver call, which
// is what threads wait for each other in.
constexpr uint64_t kLargestKept = 32 << 20;
constexpr uint64_t kMostKept = 256 << 20;

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
    ask_twice([&] { return driver_.cuMemPoolGetAttribute(known, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes); });
  }
  return bytes;
}

CUresult PoolSource::make(ContextLane& lane, size_t bytes, CUdeviceptr& ptr) noexcept {
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
  note_growth(bytes);
  release_orphans();
  return CUDA_SUCCESS;
}

void PoolSource::unmake(ContextLane* lane, CUdeviceptr ptr, size_t bytes) noexcept {
  bool alive = lane != nullptr && lane->stream != nullptr;
  if (!alive || driver_.cuMemFreeAsync(ptr, lane->stream) != CUDA_SUCCESS) {
    add_orphan({.ptr = ptr, .bytes = bytes});
  }
}

// By its address alone: the driver waits for nothing then, and needs no stream (measured).
CUresult PoolSource::give_back(CUdeviceptr ptr) noexcept { return driver_.cuMemFree_v2(ptr); }

uint64_t PoolSource::most_kept() noexcept {
  uint64_t most = may_keep(used() + not_done());
  return most < kMostKept ? most : kMostKept;
}

bool PoolSource::keeps(size_t taken, bool shared) noexcept { return taken <= kLargestKept && !shared; }

void PoolSource::note_growth(size_t bytes) noexcept {
  uint64_t taken = used() + not_done() + kept() + plain_taken(bytes);
  if (taken > reserved_.load(std::memory_order_relaxed)) {
    uint64_t real = reserved_now();
    reserved_.store(real > taken ? real : taken, std::memory_order_relaxed);
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
    shrink(0);  // a kept block holds the whole slab that it is in
    RelaxedCapture relaxed(driver_);
    driver_.cuMemPoolTrimTo(pool_.load(std::memory_order_relaxed), target);
    real = target;
  }
  reserved_.store(real, std::memory_order_relaxed);
}

bool PoolSource::release_idle() noexcept {
  CUmemoryPool known = pool_.load(std::memory_order_acquire);
  if (known == nullptr) {
    return false;
  }
  uint64_t before = reserved_now();
  RelaxedCapture relaxed(driver_);
  release_orphans();
  work().lanes().each([this](ContextLane& lane) { driver_.cuStreamSynchronize(lane.stream); });
  driver_.cuMemPoolTrimTo(known, 0);
  uint64_t after = reserved_now();
  reserved_.store(after, std::memory_order_relaxed);
  return after < before;
}

uint64_t PoolSource::idle() noexcept {
  uint64_t reserved = reserved_now();
  uint64_t taken = used();
  // In the steps in which plain memory comes and goes: a program does not see small blocks one by one.
  return reserved > taken ? (reserved - taken) / kGranule * kGranule : 0;
}

void PoolSource::end_block(const DeviceBlock& block) noexcept {
  add_orphan({.ptr = block.ptr, .bytes = block.bytes});
  not_in_use(block.taken);
}

// Without host memory for it, it is given back at once if a context is current, and lost to the program if not.
void PoolSource::add_orphan(const Orphan& orphan) noexcept {
  bool added = false;
  hold(orphan.ptr, orphan.bytes);
  {
    LockGuard guard(lock_);
    added = orphans_.add(orphan);
    orphan_count_.store(orphans_.size(), std::memory_order_relaxed);
  }
  if (!added) {
    RelaxedCapture relaxed(driver_);
    unhold(orphan.ptr);
    driver_.cuMemFree_v2(orphan.ptr);
  }
}

// What the driver refuses now, as it may in a thread without a context, waits for the next time.
void PoolSource::release_orphans() noexcept {
  RelaxedCapture relaxed(driver_);
  for (CUresult result = CUDA_SUCCESS; orphan_count_.load(std::memory_order_relaxed) != 0 && result == CUDA_SUCCESS;) {
    Orphan orphan{};
    {
      LockGuard guard(lock_);
      if (orphans_.size() == 0) {
        return;
      }
      orphan = orphans_[orphans_.size() - 1];
      orphans_.remove_at(orphans_.size() - 1);
      orphan_count_.store(orphans_.size(), std::memory_order_relaxed);
    }
    unhold(orphan.ptr);  // first: the driver may give the address out again at once
    result = driver_.cuMemFree_v2(orphan.ptr);
    if (result != CUDA_SUCCESS) {
      add_orphan(orphan);
    }
  }
}

}  // namespace xlog
