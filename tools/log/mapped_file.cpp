#include "tools/log/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace xlog {

MappedFile::MappedFile(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) {
    error_ = path + ": " + std::strerror(errno);
  } else if (!S_ISREG(info.st_mode)) {
    error_ = path + ": not a regular file";
  } else if (info.st_size > 0) {
    void* data = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      error_ = path + ": " + std::strerror(errno);
    } else {
      data_ = static_cast<const char*>(data);
      size_ = static_cast<size_t>(info.st_size);
      madvise(data, size_, MADV_SEQUENTIAL);
    }
  }
  if (fd >= 0) {
    close(fd);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    munmap(const_cast<char*>(data_), size_);
  }
}

void MappedFile::forget_before(size_t offset) {
  constexpr size_t kStep = 16 << 20;
  size_t end = offset / kStep * kStep;
  if (end > forgotten_) {
    madvise(const_cast<char*>(data_) + forgotten_, end - forgotten_, MADV_DONTNEED);
    forgotten_ = end;
  }
}

}  // namespace xlog
