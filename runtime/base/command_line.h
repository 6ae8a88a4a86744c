// The program's arguments, as the kernel keeps them.
#pragma once

#include <string_view>

#include "runtime/base/memory_map.h"
#include "runtime/base/system_calls.h"
#include "runtime/base/text.h"

namespace xlog {

template <class Visit>  // visit(std::string_view)
void each_argument(Visit visit) noexcept {
  constexpr size_t kMost = 64 << 10;
  auto* data = static_cast<char*>(map_state(kMost));
  if (data == nullptr) {
    return;
  }
  int fd = kernel::open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  long n = fd >= 0 ? kernel::read_at(fd, data, kMost, 0) : -1;
  if (fd >= 0) {
    kernel::close(fd);
  }
  for (std::string_view rest(data, n > 0 ? static_cast<size_t>(n) : 0); !rest.empty();) {
    size_t end = rest.find('\0');  // NUL between two
    visit(rest.substr(0, end));
    rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
  }
  unmap_state(data, kMost);
}

// A word as a shell takes it.
void put_shell_word(TextSink& out, std::string_view word) noexcept;
// All arguments so, on one line.
void put_command_line(TextSink& out) noexcept;

}  // namespace xlog
