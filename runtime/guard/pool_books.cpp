#include "runtime/guard/pool_books.h"

namespace xlog {

namespace {

uint64_t less(uint64_t from, uint64_t what) noexcept { return from > what ? from - what : 0; }
uint64_t higher(uint64_t a, uint64_t b) noexcept { return a > b ? a : b; }

}  // namespace

PoolBooks::Pool* PoolBooks::find(CUmemoryPool handle) noexcept {
  Name* name = names_.find(reinterpret_cast<uint64_t>(handle));
  return name != nullptr ? find(name->number) : nullptr;
}

uint64_t PoolBooks::block_made(CUmemoryPool handle, uint64_t bytes, uint64_t extra) noexcept {
  if (handle == nullptr) {
    return 0;
  }
  LockGuard guard(lock_);
  bool known = false;
  Name* name = names_.claim(reinterpret_cast<uint64_t>(handle), known);
  if (name == nullptr) {
    return 0;
  }
  uint64_t number = known ? name->number : ++last_number_;
  name->number = number;
  bool found = false;
  Pool* pool = pools_.claim(number << 4, found);
  if (pool == nullptr) {
    return 0;
  }
  pool->live += bytes;
  pool->extra += extra;
  pool->highest = higher(pool->highest, pool->live);
  pool->most_extra = higher(pool->most_extra, pool->extra);
  return number;
}

void PoolBooks::block_leaves(uint64_t number, uint64_t bytes) noexcept {
  LockGuard guard(lock_);
  if (Pool* pool = find(number); pool != nullptr) {
    pool->live = less(pool->live, bytes);
    pool->extra += bytes;
    pool->most_extra = higher(pool->most_extra, pool->extra);
  }
}

void PoolBooks::block_left(uint64_t number, uint64_t bytes, uint64_t extra) noexcept {
  LockGuard guard(lock_);
  if (Pool* pool = find(number); pool != nullptr) {
    pool->live = less(pool->live, bytes);
    pool->extra = less(pool->extra, extra);
  }
}

uint64_t PoolBooks::begin_end(CUmemoryPool handle) noexcept {
  LockGuard guard(lock_);
  Name* name = names_.find(reinterpret_cast<uint64_t>(handle));
  uint64_t number = name != nullptr ? name->number : 0;
  if (name != nullptr) {
    names_.erase(name);
  }
  return number;
}

void PoolBooks::finish_end(uint64_t number, CUmemoryPool handle, bool ended) noexcept {
  LockGuard guard(lock_);
  Pool* pool = find(number);
  if (pool == nullptr) {
    return;
  }
  if (ended) {
    pools_.erase(pool);
    return;
  }
  bool known = false;
  Name* name = names_.claim(reinterpret_cast<uint64_t>(handle), known);
  if (name != nullptr && !known) {
    name->number = number;
  }
}

// Whether the driver counts a block that was freed in a stream until the stream has come to the free is left open: what the program
// is known to have is shown at least.
uint64_t PoolBooks::used(CUmemoryPool handle, uint64_t driver_says) noexcept {
  LockGuard guard(lock_);
  Pool* pool = find(handle);
  return pool != nullptr ? higher(less(driver_says, pool->extra), pool->live) : driver_says;
}

uint64_t PoolBooks::highest(CUmemoryPool handle, uint64_t driver_says) noexcept {
  LockGuard guard(lock_);
  Pool* pool = find(handle);
  return pool != nullptr ? higher(less(driver_says, pool->most_extra), pool->highest) : driver_says;
}

void PoolBooks::reset_highest(CUmemoryPool handle) noexcept {
  LockGuard guard(lock_);
  if (Pool* pool = find(handle); pool != nullptr) {
    pool->highest = pool->live;
    pool->most_extra = pool->extra;
  }
}

}  // namespace xlog
