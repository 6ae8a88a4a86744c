#include "runtime/record/log_windows.h"

#include <sys/mman.h>

#include <cstring>

#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "runtime/record/row_writer.h"

namespace xlog {

uint64_t LogWindows::Window::filled() const noexcept {
  uint64_t sum = 0;
  for (const Stripe& each : stripes) {
    sum += each.filled.load(std::memory_order_acquire);
  }
  return sum;
}

void LogWindows::Window::unmap() noexcept {
  munmap(data.load(std::memory_order_relaxed), end.load(std::memory_order_relaxed) - begin.load(std::memory_order_relaxed));
  used.store(0, std::memory_order_release);
}

void LogWindows::unmap_filled() noexcept {
  for (Window& each : windows_) {
    if (each.used.load(std::memory_order_relaxed) != 0 &&
        each.filled() == each.end.load(std::memory_order_relaxed) - each.begin.load(std::memory_order_relaxed)) {
      each.unmap();
    }
  }
}

bool LogWindows::add(char* data, uint64_t begin, uint64_t size) noexcept {
  unmap_filled();
  uint32_t newest = newest_.load(std::memory_order_relaxed);
  for (uint32_t i = 1; i <= kWindows; ++i) {
    uint32_t at = (newest + i) % kWindows;
    Window& window = windows_[at];
    if (window.used.load(std::memory_order_relaxed) != 0) {
      continue;
    }
    window.begin.exchange(kChanging, std::memory_order_acq_rel);  // before the others change
    window.end.store(begin + size, std::memory_order_relaxed);
    window.data.store(data, std::memory_order_relaxed);
    for (Stripe& each : window.stripes) {
      each.filled.store(0, std::memory_order_relaxed);
    }
    window.used.store(1, std::memory_order_relaxed);
    window.begin.store(begin, std::memory_order_release);
    newest_.store(at, std::memory_order_release);
    return true;
  }
  return false;
}

// The window of a place that is not filled yet does not change, so it is found. Others may while they are looked at:
// their begin tells.
LogWindows::View LogWindows::find(uint64_t offset) noexcept {
  uint32_t newest = newest_.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < kWindows; ++i) {
    Window& window = windows_[(newest - i) % kWindows];
    View view{&window, nullptr, window.begin.load(std::memory_order_acquire), 0};
    view.end = window.end.load(std::memory_order_acquire);
    view.data = window.data.load(std::memory_order_acquire);
    bool holds = view.begin <= offset && offset < view.end && window.begin.load(std::memory_order_relaxed) == view.begin;
    if (holds && window.used.load(std::memory_order_relaxed) != 0) {
      return view;
    }
  }
  __builtin_trap();  // a place that was never claimed
}

void LogWindows::count(const View& view, uint64_t bytes) noexcept {
  view.window->stripes[thread_id() % kStripes].filled.fetch_add(bytes, std::memory_order_release);
}

// Across windows, which are not counted here.
void LogWindows::put(uint64_t offset, std::string_view text) noexcept {
  while (!text.empty()) {
    View view = find(offset);
    uint64_t room = view.end - offset;
    uint64_t here = text.size() < room ? text.size() : room;
    std::memcpy(view.data + (offset - view.begin), text.data(), here);
    offset += here;
    text.remove_prefix(here);
  }
}

void LogWindows::fill(uint64_t offset, uint64_t size, std::string_view head, std::string_view middle, std::string_view tail) noexcept {
  View view = find(offset);
  if (offset + size <= view.end && head.size() >= kWrittenLast) {
    char* at = view.data + (offset - view.begin);
    std::memcpy(at + kWrittenLast, head.data() + kWrittenLast, head.size() - kWrittenLast);
    std::memcpy(at + head.size(), middle.data(), middle.size());
    std::memcpy(at + head.size() + middle.size(), tail.data(), tail.size());
    std::atomic_signal_fence(std::memory_order_release);
    std::memcpy(at, head.data(), kWrittenLast);
    count(view, size);
    return;
  }
  Text<kLongestRow> row;
  row.put(head).put(middle).put(tail);
  size_t last = row.size() < kWrittenLast ? row.size() : kWrittenLast;
  put(offset + last, row.view().substr(last));
  std::atomic_signal_fence(std::memory_order_release);
  put(offset, row.view().substr(0, last));
  for (uint64_t end = offset + size; offset < end;) {
    View each = find(offset);
    uint64_t here = (end < each.end ? end : each.end) - offset;
    count(each, here);
    offset += here;
  }
}

bool LogWindows::is_filled_to(uint64_t end) const noexcept {
  const Window& last = windows_[newest_.load(std::memory_order_relaxed)];
  uint64_t begin = last.begin.load(std::memory_order_relaxed);
  return last.used.load(std::memory_order_relaxed) == 0 || (end >= begin && last.filled() == end - begin);
}

void LogWindows::drop_last() noexcept {
  Window& last = windows_[newest_.load(std::memory_order_relaxed)];
  if (last.used.load(std::memory_order_relaxed) != 0) {
    last.unmap();
  }
}

}  // namespace xlog
