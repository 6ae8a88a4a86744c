// Nodes of one size from pages of our own, kept for reuse and given back to the system together. `Node` is plain data with
// a member `next`. Thread-safe.
#pragma once

#include <cstddef>

#include "runtime/base/lock.h"
#include "runtime/base/memory_map.h"

namespace xlog {

template <class Node>
class Slab {
 public:
  constexpr Slab() = default;
  ~Slab() {
    while (pages_ != nullptr) {
      Page* next = pages_->next;
      unmap_state(pages_, sizeof(Page));
      pages_ = next;
    }
  }
  Slab(const Slab&) = delete;
  Slab& operator=(const Slab&) = delete;

  // A zeroed node, or nullptr when there is no memory.
  Node* get() noexcept {
    LockGuard guard(lock_);
    if (free_ == nullptr && !add_page()) {
      return nullptr;
    }
    Node* node = free_;
    free_ = node->next;
    *node = {};
    return node;
  }

  // One node, whatever its `next` says; nullptr is none.
  void put(Node* node) noexcept {
    if (node != nullptr) {
      node->next = nullptr;
      put_list(node);
    }
  }

  // A list of nodes, linked by `next`; nullptr is none.
  void put_list(Node* list) noexcept {
    if (list == nullptr) {
      return;
    }
    Node* last = list;
    while (last->next != nullptr) {
      last = last->next;
    }
    LockGuard guard(lock_);
    last->next = free_;
    free_ = list;
  }

 private:
  static constexpr size_t kPageBytes = 64 << 10;
  struct Page {
    Page* next;
    Node nodes[(kPageBytes - alignof(Node) - sizeof(Page*)) / sizeof(Node)];
  };

  bool add_page() noexcept {
    auto* page = static_cast<Page*>(map_kept(sizeof(Page)));
    if (page == nullptr) {
      return false;
    }
    page->next = pages_;
    pages_ = page;
    for (Node& each : page->nodes) {
      each.next = free_;
      free_ = &each;
    }
    return true;
  }

  Lock lock_{};
  Node* free_ = nullptr;
  Page* pages_ = nullptr;
};

}  // namespace xlog
