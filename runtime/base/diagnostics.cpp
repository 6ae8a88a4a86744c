#include "runtime/base/diagnostics.h"

#include <cerrno>

#include "runtime/base/signals_held.h"
#include "runtime/base/text.h"

namespace xlog {

constinit FirstStderr first_stderr{};

namespace {

constexpr int kStderr = 2;

// `info` becomes what descriptor 2 is now.
bool is_the_first(struct stat& info) noexcept {
  if (kernel::status(kStderr, info) != 0) {
    return false;
  }
  switch (first_stderr.known) {
    case FirstStderr::Known::no:
      return true;
    case FirstStderr::Known::open:
      return info.st_dev == first_stderr.device && info.st_ino == first_stderr.inode;
    case FirstStderr::Known::closed:
      break;
  }
  return false;
}

// A pipe or a terminal through a file description of our own, since O_NONBLOCK on the program's would be seen by all who share it.
long write_by_own_description(std::string_view line) noexcept {
  int fd = kernel::open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) {
    return kernel::is_writable(kStderr) ? kernel::write(kStderr, line) : -EAGAIN;
  }
  long written = kernel::write(fd, line);
  kernel::close(fd);
  return written;
}

long write_to(unsigned mode, std::string_view line) noexcept {
  if (S_ISSOCK(mode)) {
    return kernel::send_without_waiting(kStderr, line);
  }
  if (S_ISFIFO(mode) || S_ISCHR(mode)) {
    // Before Linux 6.4 the kernel cannot say it for a pipe, and for a terminal it never can.
    long written = kernel::write_without_waiting(kStderr, line);
    return written == -EOPNOTSUPP || written == -ENOSYS || written == -EINVAL ? write_by_own_description(line) : written;
  }
  return kernel::write(kStderr, line);
}

}  // namespace

void say(std::string_view text) noexcept {
  Text<1024> line;
  line.put("xlog: ");
  put_plain(line, text.substr(0, text.size() < 1000 ? text.size() : 1000)).put('\n');
  struct stat info;
  if (is_the_first(info)) {
    WriteSignalsHeld held;
    held.forget(write_to(info.st_mode, line.view()));
  }
}

}  // namespace xlog
