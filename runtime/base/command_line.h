// The program's arguments, as the kernel keeps them.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <string_view>

#include "runtime/base/memory_map.h"
#include "runtime/base/text.h"

namespace xlog {

template <class Visit>  // visit(std::string_view)
void each_argument(Visit visit) noexcept {
  constexpr size_t kMost = 64 << 10;
  auto* data = static_cast<char*>(map_state(kMost));
  if (data == nullptr) {
    return;
  }
  int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, data, kMost) : -1;
  if (fd >= 0) {
    close(fd);
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
