#include "runtime/base/diagnostics.h"

#include <unistd.h>

#include <cerrno>

#include "runtime/base/text.h"

namespace xlog {

void say(std::string_view text) noexcept {
  int saved = errno;
  Text<1024> line;
  line.put("xlog: ").put(text.substr(0, text.size() < 1000 ? text.size() : 1000)).put('\n');
  ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  static_cast<void>(written);
  errno = saved;
}

}  // namespace xlog
