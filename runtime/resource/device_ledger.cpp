#include "runtime/resource/device_ledger.h"

#include <new>

#include "runtime/base/memory_map.h"
#include "runtime/resource/global_device_budget.h"

namespace xlog {

namespace {

struct NumberedLedger {
  DeviceLedger ledger;
  int ordinal = 0;
  NumberedLedger* next = nullptr;
};

constinit DeviceLedger first_ledgers[kMaxDevices];
constinit DeviceLedger unremembered;  // where there is no host memory for one: these GPUs share what they may have
constinit Lock others_lock;
constinit NumberedLedger* others = nullptr;

}  // namespace

DeviceLedger& DeviceLedger::of_device(int ordinal) noexcept {
  if (ordinal >= 0 && static_cast<size_t>(ordinal) < kMaxDevices) {
    return first_ledgers[ordinal];
  }
  LockGuard guard(others_lock);
  NumberedLedger* each = others;
  while (each != nullptr && each->ordinal != ordinal) {
    each = each->next;
  }
  if (each == nullptr) {
    void* place = map_kept(sizeof(NumberedLedger));
    if (place == nullptr) {
      return unremembered;
    }
    each = new (place) NumberedLedger{};
    each->ordinal = ordinal;
    each->next = others;
    others = each;
  }
  return each->ledger;
}

void DeviceLedger::join(GlobalDeviceBudget& budget) noexcept {
  LockGuard guard(lock_);
  budget.next_member_ = first_;
  first_ = &budget;
}

void DeviceLedger::leave(GlobalDeviceBudget& budget) noexcept {
  LockGuard guard(lock_);
  GlobalDeviceBudget** at = &first_;
  while (*at != nullptr && *at != &budget) {
    at = &(*at)->next_member_;
  }
  if (*at != nullptr) {
    *at = budget.next_member_;
  }
}

// Looks, does not wait: the lock keeps the members from ending meanwhile.
void DeviceLedger::settle_others(const GlobalDeviceBudget& asking) noexcept {
  LockGuard guard(lock_);
  for (GlobalDeviceBudget* each = first_; each != nullptr; each = each->next_member_) {
    if (each != &asking) {
      static_cast<void>(each->settle({}));
    }
  }
}

}  // namespace xlog
