// Blocks that were given back and wait for uses on other streams. Looked at from the front; what must still wait goes to
// the back, so that one slow stream does not hide what others have finished. `Node` has `next`. Thread-safe; all zero is
// empty.
#pragma once

#include <atomic>
#include <cstddef>

#include "runtime/base/lock.h"

namespace xlog {

template <class Node>
class WaitingQueue {
 public:
  void push(Node* node) noexcept {
    node->next = nullptr;
    LockGuard guard(lock_);
    (last_ != nullptr ? last_->next : first_) = node;
    last_ = node;
    size_.fetch_add(1, std::memory_order_relaxed);
  }

  // Takes up to `most` nodes off the front, one at a time, and puts back those for which settle(node) is false.
  template <class Settle>
  void look(size_t most, Settle settle) noexcept {
    for (size_t looked = 0; looked < most; ++looked) {
      Node* node = pop();
      if (node == nullptr) {
        return;
      }
      if (!settle(node)) {
        push(node);
      }
    }
  }

  [[nodiscard]] size_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

 private:
  Node* pop() noexcept {
    LockGuard guard(lock_);
    Node* node = first_;
    if (node != nullptr) {
      first_ = node->next;
      last_ = first_ != nullptr ? last_ : nullptr;
      size_.fetch_sub(1, std::memory_order_relaxed);
    }
    return node;
  }

  Lock lock_{};
  Node* first_ = nullptr;
  Node* last_ = nullptr;
  std::atomic<size_t> size_{0};
};

}  // namespace xlog
