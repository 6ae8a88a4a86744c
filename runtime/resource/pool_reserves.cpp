#include "runtime/resource/pool_reserves.h"

#include <sched.h>

#include "runtime/base/driver_api.h"
#include "runtime/base/memory_map.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

namespace {

// What the driver takes of the card at a time: slabs where there is room for them, and granules where there is not.
constexpr uint64_t kSlabBytes = 32 << 20;
constexpr uint64_t kGranule = 2 << 20;

uint64_t rounded(uint64_t bytes, uint64_t step) noexcept {
  return bytes > UINT64_MAX - step ? UINT64_MAX / step * step : (bytes + step - 1) / step * step;
}

}  // namespace

uint64_t PoolReserves::growth_of(uint64_t bytes) noexcept { return rounded(bytes, kSlabBytes); }
uint64_t PoolReserves::least_of(uint64_t bytes) noexcept { return rounded(bytes, kGranule); }

uint64_t PoolReserves::number_of(CUmemoryPool handle) noexcept {
  uint64_t number = 0;
  {
    LockGuard guard(lock_);
    auto key = reinterpret_cast<uint64_t>(handle);
    if (Name* known = names_.find(key); known != nullptr) {
      return known->number;
    }
    bool found = false;
    number = ++last_number_;
    Pool* pool = pools_.claim(number << 4, found);
    Name* name = pool != nullptr ? names_.claim(key, found) : nullptr;
    if (name == nullptr) {
      if (pool != nullptr) {
        pools_.erase(pool);
      }
      return 0;
    }
    *pool = Pool{.ptr = number << 4, .handle = handle};
    name->number = number;
  }
  RelaxedCapture relaxed(driver_);
  read_one(number);
  return number;
}

bool PoolReserves::begin(uint64_t number, uint64_t growth, uint64_t limit) noexcept {
  LockGuard guard(lock_);
  Pool* pool = find(number);
  if (pool == nullptr || !ledger_->reserve(growth, limit)) {
    return false;
  }
  pool->flying += growth;
  ++flights_;
  return true;
}

void PoolReserves::finish(uint64_t number, uint64_t growth) noexcept {
  LockGuard guard(lock_);
  --flights_;
  if (Pool* pool = find(number); pool != nullptr) {
    pool->flying -= growth;
    pool->finished += growth;
  }
}

void PoolReserves::begin_try() noexcept {
  LockGuard guard(lock_);
  ++flights_;
}

void PoolReserves::finish_try(uint64_t number, uint64_t growth) noexcept {
  LockGuard guard(lock_);
  --flights_;
  if (Pool* pool = find(number); pool != nullptr) {
    pool->finished += growth;
    ledger_->add(growth);
  }
}

bool PoolReserves::others_allocate() noexcept {
  LockGuard guard(lock_);
  return flights_ != 0;
}

bool PoolReserves::begin_reading(uint64_t number, Reading& out) noexcept {
  LockGuard guard(lock_);
  Pool* pool = find(number);
  if (pool == nullptr || pool->ended) {
    return false;
  }
  ++pool->readers;
  out = {.handle = pool->handle, .finished = pool->finished};
  return true;
}

// A reading that another thread began later has seen all that this one has.
void PoolReserves::finish_reading(uint64_t number, const Reading& reading, bool good, uint64_t reserved) noexcept {
  LockGuard guard(lock_);
  Pool* pool = find(number);
  if (pool == nullptr) {
    return;
  }
  --pool->readers;
  if (!good || reading.finished < pool->read_at) {
    return;
  }
  uint64_t before = pool->charge();
  pool->reserved = reserved;
  pool->read_at = reading.finished;
  uint64_t now = pool->charge();
  if (now > before) {
    ledger_->add(now - before);
  } else {
    ledger_->release(before - now);
  }
}

// Twice where it fails, because nothing but a refusal would follow.
bool PoolReserves::read(CUmemoryPool handle, CUmemPool_attribute attribute, uint64_t& value) noexcept {
  cuuint64_t told = 0;
  auto ask = [&] { return driver_.cuMemPoolGetAttribute(handle, attribute, &told) == CUDA_SUCCESS; };
  bool good = driver_.cuMemPoolGetAttribute != nullptr && (ask() || ask());
  value = told;
  return good;
}

void PoolReserves::read_one(uint64_t number) noexcept {
  Reading reading;
  if (begin_reading(number, reading)) {
    uint64_t reserved = 0;
    bool good = read(reading.handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved);
    finish_reading(number, reading, good, reserved);
  }
}

template <class Act>
void PoolReserves::each_charged(Act act) noexcept {
  constexpr size_t kFew = 64;
  uint64_t few[kFew];
  uint64_t* numbers = few;
  size_t capacity = kFew;
  size_t count = 0;
  size_t mapped_bytes = 0;
  for (bool complete = false; !complete;) {
    size_t needed = 0;
    {
      LockGuard guard(lock_);
      count = 0;
      pools_.erase_if([&](Pool& each) {
        if (each.charge() != 0 && !each.ended) {
          ++needed;
          if (count < capacity) {
            numbers[count++] = each.ptr >> 4;
          }
        }
        return false;
      });
    }
    complete = needed <= capacity;
    if (!complete) {
      if (mapped_bytes != 0) {
        unmap_state(numbers, mapped_bytes);
      }
      capacity = needed + kFew;
      mapped_bytes = capacity * sizeof(uint64_t);
      numbers = static_cast<uint64_t*>(map_state(mapped_bytes));
      if (numbers == nullptr) {
        return;  // the bounds stay as they are
      }
    }
  }
  for (size_t i = 0; i < count; ++i) {
    act(numbers[i]);
  }
  if (mapped_bytes != 0) {
    unmap_state(numbers, mapped_bytes);
  }
}

void PoolReserves::measure() noexcept {
  RelaxedCapture relaxed(driver_);
  each_charged([this](uint64_t number) { read_one(number); });
}

void PoolReserves::give_back_idle() noexcept {
  each_charged([this](uint64_t number) { trim(number, 0); });
}

uint64_t PoolReserves::idle(uint64_t number, uint64_t& reserved) noexcept {
  reserved = 0;
  uint64_t used = 0;
  Reading reading;
  if (!begin_reading(number, reading)) {
    return 0;
  }
  RelaxedCapture relaxed(driver_);
  bool good = read(reading.handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved);
  bool known = good && read(reading.handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, used);
  finish_reading(number, reading, good, reserved);
  return known && used < reserved ? reserved - used : 0;
}

void PoolReserves::trim(uint64_t number, uint64_t keep) noexcept {
  Reading reading;
  if (driver_.cuMemPoolTrimTo == nullptr || !begin_reading(number, reading)) {
    return;
  }
  RelaxedCapture relaxed(driver_);
  driver_.cuMemPoolTrimTo(reading.handle, keep);
  uint64_t reserved = 0;
  bool good = read(reading.handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved);
  finish_reading(number, reading, good, reserved);
}

void PoolReserves::block_made(uint64_t number) noexcept {
  LockGuard guard(lock_);
  if (Pool* pool = find(number); pool != nullptr) {
    ++pool->live;
  }
}

// The charge stays in the ledger: it is the caller's now.
uint64_t PoolReserves::remove(Pool& pool) noexcept {
  uint64_t charged = pool.charge();
  pools_.erase(&pool);
  return charged;
}

uint64_t PoolReserves::block_ended(uint64_t number) noexcept {
  LockGuard guard(lock_);
  Pool* pool = find(number);
  return pool != nullptr && --pool->live == 0 && pool->ended ? remove(*pool) : 0;
}

uint64_t PoolReserves::begin_end(CUmemoryPool handle) noexcept {
  uint64_t number = 0;
  {
    LockGuard guard(lock_);
    Name* name = names_.find(reinterpret_cast<uint64_t>(handle));
    if (name == nullptr) {
      return 0;
    }
    number = name->number;
    names_.erase(name);
  }
  {
    RelaxedCapture relaxed(driver_);
    read_one(number);
  }
  for (bool asked = true; asked; asked ? sched_yield() : 0) {
    LockGuard guard(lock_);
    Pool* pool = find(number);
    asked = pool != nullptr && pool->readers != 0;
    if (pool != nullptr) {
      pool->ended = true;
    }
  }
  return number;
}

uint64_t PoolReserves::finish_end(uint64_t number, CUmemoryPool handle, bool destroyed) noexcept {
  LockGuard guard(lock_);
  Pool* pool = find(number);
  if (pool == nullptr) {
    return 0;
  }
  if (destroyed) {
    return pool->live == 0 ? remove(*pool) : 0;
  }
  bool found = false;
  pool->ended = false;
  if (Name* name = names_.claim(reinterpret_cast<uint64_t>(handle), found); name != nullptr) {
    name->number = number;
  }
  return 0;
}

}  // namespace xlog
