#include "runtime/resource/device_ledger.h"

#include "runtime/resource/global_device_budget.h"

namespace xlog {

DeviceLedger& DeviceLedger::of_device(int ordinal) noexcept {
  static constinit DeviceLedger ledgers[kMaxDevices];
  return ledgers[ordinal >= 0 && static_cast<size_t>(ordinal) < kMaxDevices ? static_cast<size_t>(ordinal) : kMaxDevices - 1];
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
