#include "runtime/base/fork_age.h"

#include <atomic>

#include "runtime/base/memory_map.h"

namespace xlog {

namespace {
std::atomic<std::atomic<uint32_t>*> mark{nullptr};
std::atomic<uint32_t> age{0};
}  // namespace

uint32_t fork_age() noexcept {
  std::atomic<uint32_t>* page = mark.load(std::memory_order_acquire);
  if (page == nullptr) {
    page = static_cast<std::atomic<uint32_t>*>(map_state(sizeof(uint32_t)));
    if (page == nullptr) {
      return age.load(std::memory_order_relaxed);
    }
    page->store(1, std::memory_order_relaxed);
    std::atomic<uint32_t>* none = nullptr;
    if (!mark.compare_exchange_strong(none, page, std::memory_order_acq_rel)) {
      unmap_state(page, sizeof(uint32_t));
      page = none;
    }
  }
  if (page->load(std::memory_order_relaxed) == 0 && page->exchange(1, std::memory_order_acq_rel) == 0) {
    age.fetch_add(1, std::memory_order_acq_rel);
  }
  return age.load(std::memory_order_acquire);
}

}  // namespace xlog
