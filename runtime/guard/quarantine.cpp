#include "runtime/guard/quarantine.h"

#include <sched.h>

#include <utility>

#include "runtime/base/thread.h"

namespace xlog {

// The lock is held.
void Quarantine::link(Held& node, bool first) noexcept {
  bytes_.fetch_add(node.block.taken, std::memory_order_relaxed);
  ++count_;
  node.next = first ? oldest_ : nullptr;
  if (first) {
    oldest_ = &node;
    newest_ = newest_ == nullptr ? &node : newest_;
  } else {
    (newest_ != nullptr ? newest_->next : oldest_) = &node;
    newest_ = &node;
  }
}

bool Quarantine::add(DeviceBlock& block) noexcept {
  Held* node = nodes_.get();
  if (node == nullptr) {
    return false;
  }
  addresses_.add(block.ptr, block.bytes);
  LockGuard guard(lock_);
  node->block = std::move(block);
  link(*node, false);
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
    leaving_.fetch_add(1, std::memory_order_seq_cst);  // before the bytes are less
    (previous != nullptr ? previous->next : oldest_) = each->next;
    newest_ = newest_ == each ? previous : newest_;
    out = std::move(each->block);
    bytes_.fetch_sub(out.taken, std::memory_order_relaxed);
    --count_;
    each->next = spare_;
    spare_ = each;
    return true;
  }
  return false;
}

// Each block that was taken has left a node.
void Quarantine::freed() noexcept {
  {
    LockGuard guard(lock_);
    Held* node = spare_;
    spare_ = node->next;
    nodes_.put(node);
  }
  given_up_.fetch_add(1, std::memory_order_release);
  leaving_.fetch_sub(1, std::memory_order_seq_cst);
}

void Quarantine::put_back(DeviceBlock& block) noexcept {
  addresses_.add(block.ptr, block.bytes);
  LockGuard guard(lock_);
  Held* node = spare_;
  spare_ = node->next;
  node->block = std::move(block);
  link(*node, true);
  leaving_.fetch_sub(1, std::memory_order_seq_cst);
}

void Quarantine::put_last(DeviceBlock& block) noexcept {
  LockGuard guard(lock_);
  Held* node = spare_;
  spare_ = node->next;
  node->block = std::move(block);
  link(*node, false);
  leaving_.fetch_sub(1, std::memory_order_seq_cst);
}

void Quarantine::wait_for_others() const noexcept {
  constexpr uint64_t kPatience = 1'000'000'000;
  uint64_t start = steady_time();
  while (leaving_.load(std::memory_order_seq_cst) != 0 && steady_time() - start < kPatience) {
    sched_yield();
  }
}

size_t Quarantine::count() noexcept {
  LockGuard guard(lock_);
  return count_;
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
