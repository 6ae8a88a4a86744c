#include "runtime/guard/quarantine.h"

#include <utility>

namespace xlog {

bool Quarantine::add(DeviceBlock& block) noexcept {
  Held* node = nodes_.get();
  if (node == nullptr) {
    return false;
  }
  addresses_.add(block.ptr, block.bytes);
  LockGuard guard(lock_);
  bytes_.fetch_add(block.taken, std::memory_order_relaxed);
  node->block = std::move(block);
  node->next = nullptr;
  (newest_ != nullptr ? newest_->next : oldest_) = node;
  newest_ = node;
  return true;
}

template <class Match>
bool Quarantine::take_first(Match match, DeviceBlock& out) noexcept {
  LockGuard guard(lock_);
  Held* previous = nullptr;
  for (Held* each = oldest_; each != nullptr; previous = each, each = each->next) {
    if (!match(each->block)) {
      continue;
    }
    (previous != nullptr ? previous->next : oldest_) = each->next;
    newest_ = newest_ == each ? previous : newest_;
    out = std::move(each->block);
    bytes_.fetch_sub(out.taken, std::memory_order_relaxed);
    nodes_.put(each);
    return true;
  }
  return false;
}

bool Quarantine::take_oldest(uint64_t most, DeviceBlock& out) noexcept {
  return bytes() > most && take_first([](const DeviceBlock&) { return true; }, out);
}

bool Quarantine::take_of(CUcontext context, DeviceBlock& out) noexcept {
  return take_first([context](const DeviceBlock& block) { return block.context == context; }, out);
}

bool Quarantine::find(CUdeviceptr ptr, GuardRecord& out) noexcept {
  LockGuard guard(lock_);
  for (Held* each = oldest_; each != nullptr; each = each->next) {
    if (each->block.ptr == ptr && each->block.guard != nullptr) {
      out = *each->block.guard;
      return true;
    }
  }
  return false;
}

}  // namespace xlog
