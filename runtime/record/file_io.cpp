#include "runtime/record/file_io.h"

#include "runtime/base/text.h"

#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>

#include <cerrno>

namespace xlog {

namespace {

constexpr int kLowestDescriptor = 1000;

// An overlay does not say what is below. Extents that are reserved and not written are those of ext4, xfs and their like;
// btrfs has them too, and copies on write: its statfs counts no inodes. The first page of the empty file is taken for this.
bool reserves_extents(int fd, const struct statfs& fs) noexcept {
  constexpr uint64_t kPage = 4096;
  alignas(fiemap) char asked[sizeof(fiemap) + sizeof(fiemap_extent)] = {};
  auto* map = reinterpret_cast<fiemap*>(asked);
  map->fm_length = kPage;
  map->fm_extent_count = 1;
  if (fs.f_files == 0 || !within_file_limit(kPage) || fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, kPage) != 0 ||
      ioctl(fd, FS_IOC_FIEMAP, map) != 0 || map->fm_mapped_extents != 1) {
    return false;
  }
  constexpr uint32_t kHarmless = FIEMAP_EXTENT_LAST | FIEMAP_EXTENT_MERGED;
  return (map->fm_extents[0].fe_flags & ~kHarmless) == FIEMAP_EXTENT_UNWRITTEN;
}

}  // namespace

// File systems whose fallocate reserves space for good and whose mapped pages are the file's.
bool can_map(int fd) noexcept {
  struct statfs fs {};
  if (fstatfs(fd, &fs) != 0) {
    return false;
  }
  constexpr unsigned long kExt4 = 0xEF53;
  constexpr unsigned long kXfs = 0x58465342;
  constexpr unsigned long kTmpfs = 0x01021994;
  constexpr unsigned long kOverlay = 0x794C7630;
  auto type = static_cast<unsigned long>(fs.f_type);
  return type == kExt4 || type == kXfs || type == kTmpfs || (type == kOverlay && reserves_extents(fd, fs));
}

bool identify(int fd, FileIdentity& out) noexcept {
  struct stat info {};
  if (fstat(fd, &info) != 0) {
    return false;
  }
  out = {.device = info.st_dev, .inode = info.st_ino};
  return true;
}

bool same(const FileIdentity& a, const FileIdentity& b) noexcept { return a.device == b.device && a.inode == b.inode; }

bool within_file_limit(uint64_t end) noexcept {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur;
}

int move_high(int fd) noexcept {
  int high = fcntl(fd, F_DUPFD_CLOEXEC, kLowestDescriptor);
  close(fd);
  return high;
}

void write_no_signal(int fd, std::string_view text) noexcept {
  sigset_t pipe;
  sigset_t before;
  sigset_t pending;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  sigpending(&pending);
  bool was_pending = sigismember(&pending, SIGPIPE) == 1;
  pthread_sigmask(SIG_BLOCK, &pipe, &before);
  ssize_t n = write(fd, text.data(), text.size());
  if (n < 0 && errno == EPIPE && !was_pending) {
    timespec none{};
    sigtimedwait(&pipe, nullptr, &none);
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

namespace {

int write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno != EINTR) {
      return errno;
    }
    text.remove_prefix(n > 0 ? static_cast<size_t>(n) : 0);
  }
  return 0;
}

}  // namespace

int append_file(const char* path, std::string_view text, bool create) noexcept {
  int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT | O_EXCL : 0), 0600);
  if (fd < 0) {
    return errno;
  }
  if (create) {
    fchmod(fd, 0600);
  }
  struct stat info {};
  int error = fstat(fd, &info) == 0 ? 0 : errno;
  if (error == 0 && !within_file_limit(static_cast<uint64_t>(info.st_size) + text.size())) {
    error = EFBIG;
  }
  if (error == 0) {
    error = write_all(fd, text);
  }
  close(fd);
  return error;
}

int replace_file(const char* path, std::string_view text) noexcept {
  Text<1300> fresh;
  fresh.put(path).put(".new").put('\0');
  if (fresh.full()) {
    return ENAMETOOLONG;
  }
  unlink(fresh.data());
  int error = append_file(fresh.data(), text, true);
  if (error == 0 && rename(fresh.data(), path) != 0) {
    error = errno;
  }
  if (error != 0) {
    unlink(fresh.data());
  }
  return error;
}

int rewrite_file(const char* path, std::string_view text) noexcept {
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd < 0) {
    return errno;
  }
  struct stat info {};
  int error = fstat(fd, &info) != 0 ? errno : S_ISREG(info.st_mode) ? 0 : EINVAL;
  if (error == 0 && !within_file_limit(text.size())) {
    error = EFBIG;
  }
  if (error == 0 && ftruncate(fd, 0) != 0) {
    error = errno;
  }
  if (error == 0) {
    error = write_all(fd, text);
  }
  close(fd);
  return error;
}

}  // namespace xlog
