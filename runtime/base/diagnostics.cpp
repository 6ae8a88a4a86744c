#include "runtime/base/diagnostics.h"

#include <unistd.h>

#include "runtime/base/plain_calls.h"

namespace xlog {

// One write(2), so that the line is not torn; the kernel's own, since this may have to be said before anything has begun.
void say(std::string_view text) noexcept {
  char line[1024];
  size_t size = 0;
  auto put = [&](std::string_view part) {
    for (char c : part) {
      if (size < sizeof line - 1) {
        line[size++] = c;
      }
      asm volatile("" ::: "memory");
    }
  };
  put("xlog: ");
  put(text.substr(0, text.size() < 1000 ? text.size() : 1000));
  line[size++] = '\n';
  system_call(SYS_write, STDERR_FILENO, reinterpret_cast<long>(line), static_cast<long>(size));
}

}  // namespace xlog
