#include "tools/report/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/log/csv_line.h"

namespace xlog::tools {

namespace {

// The number in /dev/fd/N, which a shell's `>(command)` gives as a name; -1 when it is none.
int descriptor_of(std::string_view path) {
  for (std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    if (path.starts_with(folder)) {
      auto number = parse_decimal(path.substr(folder.size()));
      return number && *number < 1 << 20 ? static_cast<int>(*number) : -1;
    }
  }
  return path == "/dev/stdout" ? STDOUT_FILENO : path == "/dev/stderr" ? STDERR_FILENO : -1;
}

}  // namespace

OutputFile::OutputFile(const std::string& path) : path_(path == "-" ? "" : path), name_(path_.empty() ? "standard output" : path_) {
  int given = path_.empty() ? STDOUT_FILENO : descriptor_of(path_);
  if (given >= 0) {
    fd_ = given;
    owns_fd_ = false;
  } else {
    open_named();
  }
  if (!problem_.empty()) {
    stream_.setstate(std::ios::badbit);
  }
}

OutputFile::~OutputFile() {
  if (fd_ >= 0 && owns_fd_) {
    close(fd_);
  }
  if (!fresh_.empty()) {
    unlink(fresh_.c_str());
  }
}

void OutputFile::fail(const std::string& what, int error) {
  if (problem_.empty()) {
    problem_ = name_ + ' ' + what + (error != 0 ? std::string(": ") + std::strerror(error) : "");
  }
}

void OutputFile::open_named() {
  struct stat there {};
  if (lstat(path_.c_str(), &there) != 0) {
    errno == ENOENT ? open_fresh() : fail("cannot be written", errno);
  } else if (S_ISREG(there.st_mode)) {
    open_fresh();
  } else if (S_ISCHR(there.st_mode)) {  // a terminal, /dev/null
    fd_ = open(path_.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW);
    if (fd_ < 0) {
      fail("cannot be written", errno);
    }
  } else {
    const char* what = S_ISLNK(there.st_mode) ? "a link, which is not followed" : S_ISDIR(there.st_mode) ? "a folder" : "no regular file";
    fail(std::string("is not written: it is ") + what, 0);
  }
}

// Beside the file, so that it can be renamed to it.
void OutputFile::open_fresh() {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries && fd_ < 0; ++i) {
    std::string name = path_ + ".new." + std::to_string(getpid()) + (i != 0 ? '.' + std::to_string(i) : "");
    fd_ = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd_ >= 0) {
      fresh_ = name;
    } else if (errno != EEXIST) {
      break;
    }
  }
  if (fd_ < 0) {
    fail("cannot be made", errno);
  }
}

bool OutputFile::write_all(const char* data, size_t size) {
  while (size != 0 && problem_.empty()) {
    ssize_t n = ::write(fd_, data, size);
    if (n < 0 && errno != EINTR) {
      fail("cannot be written", errno);
    } else if (n > 0) {
      data += n;
      size -= static_cast<size_t>(n);
    }
  }
  return problem_.empty();
}

bool OutputFile::Buffer::write_out() {
  bool good = file_.write_all(pbase(), static_cast<size_t>(pptr() - pbase()));
  setp(room_, room_ + sizeof room_);
  return good;
}

OutputFile::Buffer::int_type OutputFile::Buffer::overflow(int_type c) {
  if (!write_out()) {
    return traits_type::eof();
  }
  if (!traits_type::eq_int_type(c, traits_type::eof())) {
    sputc(traits_type::to_char_type(c));
  }
  return traits_type::not_eof(c);
}

bool OutputFile::commit() {
  if (problem_.empty()) {
    buffer_.write_out();
  }
  if (owns_fd_ && fd_ >= 0) {
    if (close(fd_) != 0) {  // a network's disk says only here that it is full
      fail("cannot be written", errno);
    }
    fd_ = -1;
  }
  if (problem_.empty() && !fresh_.empty()) {
    if (rename(fresh_.c_str(), path_.c_str()) != 0) {
      fail("cannot be replaced", errno);
    } else {
      fresh_.clear();
    }
  }
  return problem_.empty();
}

}  // namespace xlog::tools
