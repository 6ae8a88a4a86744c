#include "runtime/record/log_windows.h"

#include <sys/mman.h>

#include "runtime/base/system_calls.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "runtime/record/row_writer.h"

namespace xlog {

namespace {
constexpr size_t kPage = 4096;
}

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

bool write_mapped(char* at, std::string_view text) noexcept {
  iovec from{const_cast<char*>(text.data()), text.size()};
  iovec to{at, text.size()};
  return kernel::write_memory(thread_id(), &from, 1, &to, 1) == static_cast<long>(text.size());
}

// Across windows, which are not counted here.
bool LogWindows::put(uint64_t offset, std::string_view text) noexcept {
  bool written = true;
  while (!text.empty()) {
    View view = find(offset);
    uint64_t room = view.end - offset;
    uint64_t here = text.size() < room ? text.size() : room;
    written = write_mapped(view.data + (offset - view.begin), text.substr(0, here)) && written;
    offset += here;
    text.remove_prefix(here);
  }
  return written;
}

// One call of the kernel. It copies what lies in a page at once; between two pages a process may die, so of a row in two the
// beginning is the last part.
bool LogWindows::write_row(char* at, std::string_view head, std::string_view middle, std::string_view tail) noexcept {
  auto part = [](std::string_view text) { return iovec{const_cast<char*>(text.data()), text.size()}; };
  size_t size = head.size() + middle.size() + tail.size();
  bool in_one_page = reinterpret_cast<uintptr_t>(at) / kPage == (reinterpret_cast<uintptr_t>(at) + size - 1) / kPage;
  if (in_one_page) {
    iovec from[] = {part(head), part(middle), part(tail)};
    iovec to{at, size};
    return kernel::write_memory(thread_id(), from, 3, &to, 1) == static_cast<long>(size);
  }
  iovec from[] = {part(head.substr(kWrittenLast)), part(middle), part(tail), part(head.substr(0, kWrittenLast))};
  iovec to[] = {{at + kWrittenLast, size - kWrittenLast}, {at, kWrittenLast}};
  return kernel::write_memory(thread_id(), from, 4, to, 2) == static_cast<long>(size);
}

bool LogWindows::fill(uint64_t offset, uint64_t size, std::string_view head, std::string_view middle, std::string_view tail) noexcept {
  View view = find(offset);
  if (offset + size <= view.end && head.size() >= kWrittenLast) {
    bool written = write_row(view.data + (offset - view.begin), head, middle, tail);
    count(view, size);
    return written;
  }
  Text<kLongestRow> row;
  row.put(head).put(middle).put(tail);
  size_t last = row.size() < kWrittenLast ? row.size() : kWrittenLast;
  bool written = put(offset + last, row.view().substr(last)) && put(offset, row.view().substr(0, last));
  for (uint64_t end = offset + size; offset < end;) {
    View each = find(offset);
    uint64_t here = (end < each.end ? end : each.end) - offset;
    count(each, here);
    offset += here;
  }
  return written;
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
