#include "tools/log/text_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace xlog::tools {

namespace {

// The shell, or whoever began this command, has opened it for this command.
bool was_handed_over(const std::string& path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

bool read_all(int fd, size_t most, std::string& text, std::string& problem) {
  char chunk[1 << 16];
  for (;;) {
    ssize_t n = read(fd, chunk, sizeof chunk);
    if (n == 0) {
      return true;
    }
    if (n < 0 && errno != EINTR) {
      problem = std::strerror(errno);
      return false;
    }
    text.append(chunk, n > 0 ? static_cast<size_t>(n) : 0);
    if (text.size() > most) {
      problem = "larger than " + std::to_string(most >> 20) + " MiB";
      return false;
    }
  }
}

}  // namespace

bool read_text_file(const std::string& path, size_t most, std::string& text, std::string& problem) {
  bool waits = was_handed_over(path);
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | (waits ? 0 : O_NONBLOCK));
  struct stat info {};
  bool good = false;
  if (fd < 0 || fstat(fd, &info) != 0) {
    problem = std::strerror(errno);
  } else if (!S_ISREG(info.st_mode) && !waits) {
    problem = "not a regular file";
  } else {
    text.clear();
    good = read_all(fd, most, text, problem);
  }
  if (fd >= 0) {
    close(fd);
  }
  return good;
}

}  // namespace xlog::tools
