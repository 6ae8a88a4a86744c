#include "runtime/driver_use.h"

#include <cstring>

#include "runtime/base/thread.h"
#include "runtime/resource/relaxed_capture.h"
#include "runtime/runtime.h"

namespace xlog {

bool DriverUse::is_due(uint64_t now, bool refused) noexcept {
  constexpr uint64_t kApart = 100'000'000;
  constexpr uint64_t kApartRefused = 10'000'000;
  uint64_t last = last_.load(std::memory_order_relaxed);
  bool due = now - last >= (refused ? kApartRefused : kApart);
  return due && last_.compare_exchange_strong(last, now, std::memory_order_relaxed);
}

bool UnhookedNames::makes_memory(std::string_view name) noexcept {
  constexpr std::string_view kMakers[] = {"cuMemAlloc",        "cuMemHostAlloc",         "cuMemCreate",           "cuArrayCreate",
                                          "cuArray3DCreate",   "cuMipmappedArrayCreate", "cuGraphAddMemAlloc",    "cuIpcOpenMemHandle",
                                          "cuMulticastCreate", "cuMemPoolImportPointer", "cuImportExternalMemory"};
  for (std::string_view maker : kMakers) {
    if (name.starts_with(maker)) {
      return true;
    }
  }
  return false;
}

void UnhookedNames::add(std::string_view name) noexcept {
  LockGuard guard(lock_);
  uint32_t count = count_.load(std::memory_order_relaxed);
  name = name.substr(0, kLength - 1);
  for (uint32_t i = 0; i < count; ++i) {
    if (name == names_[i]) {
      return;
    }
  }
  if (count < kMost) {
    std::memcpy(names_[count], name.data(), name.size());
    names_[count][name.size()] = '\0';
    count_.store(count + 1, std::memory_order_release);
  }
}

bool UnhookedNames::next(char (&name)[kLength]) noexcept {
  if (told_.load(std::memory_order_relaxed) == count_.load(std::memory_order_acquire)) {
    return false;
  }
  LockGuard guard(lock_);
  uint32_t at = told_.load(std::memory_order_relaxed);
  if (at == count_.load(std::memory_order_relaxed)) {
    return false;
  }
  std::memcpy(name, names_[at], kLength);
  told_.store(at + 1, std::memory_order_relaxed);
  return true;
}

void Runtime::handed_out_unhooked(std::string_view name) noexcept {
  if (options_.log.size != 0 && UnhookedNames::makes_memory(name)) {
    unhooked_.add(name);
  }
}

// Rows beside the calls: what the driver has in use on this GPU, whosever it is.
void Runtime::look_at_driver_use(NativeDevice& target, bool refused) noexcept {
  if (target.logging() == nullptr || !is_logging() || target.ordinal() < 0 || exiting_.load(std::memory_order_relaxed)) {
    return;
  }
  char name[UnhookedNames::kLength];
  while (unhooked_.next(name)) {
    Event event;
    event.action = action::unhooked;
    event.message = name;
    recorder_.record(event);
  }
  int ordinal = target.ordinal();
  size_t free = 0;
  size_t total = 0;
  bool due = devices_in_use_.at(ordinal)->use.is_due(coarse_time(), refused) && devices_.of_current(driver_) == ordinal;
  if (!due || driver_.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS) {
    return;
  }
  Text<120> message;
  CUmemoryPool pool = nullptr;
  cuuint64_t reserved = 0;
  cuuint64_t used = 0;
  RelaxedCapture relaxed(driver_);
  if (driver_.cuDeviceGetDefaultMemPool != nullptr && driver_.cuDeviceGetDefaultMemPool(&pool, ordinal) == CUDA_SUCCESS &&
      driver_.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved) == CUDA_SUCCESS &&
      driver_.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) == CUDA_SUCCESS && reserved != 0) {
    message.put("default pool: reserved ").decimal(reserved).put(" used ").decimal(used);
  }
  Event event;
  event.action = action::driver_used;
  event.device = static_cast<uint64_t>(ordinal);
  event.bytes = total - free;
  event.live_bytes = target.logging()->live_bytes();
  event.message = message.view();
  recorder_.record(event);
}

bool Runtime::limited_memory(std::string_view uuid, uint64_t& free, uint64_t& total) noexcept {
  constexpr size_t kPrefix = 4;  // GPU- or MIG-
  for (int ordinal = 0; uuid.size() > kPrefix && ordinal < devices_.count(driver_); ++ordinal) {
    NativeDevice* target = device(ordinal);
    BudgetSnapshot budget;
    if (target == nullptr || std::string_view(target->facts().uuid).substr(kPrefix) != uuid.substr(kPrefix)) {
      continue;
    }
    let_go_of_exports();
    target->measure();
    if (!target->top().budget_snapshot(budget)) {
      return false;
    }
    total = budget.limit < total ? budget.limit : total;
    free = budget.remaining() < free ? budget.remaining() : free;
    return true;
  }
  return false;
}

}  // namespace xlog
