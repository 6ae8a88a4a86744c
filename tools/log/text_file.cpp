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

std::string special_mode(mode_t mode) {
  return S_ISREG(mode) ? "" : S_ISDIR(mode) ? "a folder" : S_ISFIFO(mode) ? "a FIFO" : S_ISSOCK(mode) ? "a socket" : "a device";
}

bool read_whole(int fd, size_t most, std::string& text) {
  char buffer[65536];
  for (;;) {
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      return n == 0;
    }
    text.append(buffer, static_cast<size_t>(n));
    if (text.size() > most) {
      errno = EFBIG;
      return false;
    }
  }
}

}  // namespace

std::string special_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? special_mode(info.st_mode) : "";
}

bool read_text_file(const std::string& path, std::string& text, std::string& problem, size_t most) {
  text.clear();
  bool waits = was_handed_over(path);
  std::string special = waits ? "" : special_file(path);
  problem = special.empty() ? "" : path + " is " + special + ", not a file";
  if (!special.empty()) {
    return false;  // not even opened: that can have an effect
  }
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | (waits ? 0 : O_NONBLOCK));
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) {
    problem = path + ": " + std::strerror(errno);
  } else if (!S_ISREG(info.st_mode) && !waits) {
    problem = path + " is " + special_mode(info.st_mode) + ", not a file";
  } else if (!waits && static_cast<uint64_t>(info.st_size) > most) {
    problem = path + ": too large (" + std::to_string(info.st_size) + " bytes) for a file of this kind";
  } else if (!read_whole(fd, most, text)) {
    problem = path + ": " + std::strerror(errno);
  }
  if (fd >= 0) {
    close(fd);
  }
  return problem.empty();
}

}  // namespace xlog::tools
