#include "runtime/record/file_io.h"

#include "runtime/base/text.h"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/vfs.h>

#include <cerrno>

#include "runtime/base/signals_held.h"

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
  if (fs.f_files == 0 || !within_file_limit(kPage) || kernel::call(SYS_fallocate, fd, FALLOC_FL_KEEP_SIZE, 0, kPage) != 0 ||
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
  struct stat info;
  if (kernel::status(fd, info) != 0) {
    return false;
  }
  out = {.device = info.st_dev, .inode = info.st_ino};
  return true;
}

bool same(const FileIdentity& a, const FileIdentity& b) noexcept { return a.device == b.device && a.inode == b.inode; }

bool within_file_limit(uint64_t end) noexcept {
  rlimit limit;
  return kernel::limit(RLIMIT_FSIZE, limit) != 0 || limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur;
}

int move_high(int fd) noexcept {
  int high = kernel::duplicate(fd, kLowestDescriptor);
  kernel::close(fd);
  return high >= 0 ? high : -1;
}

int open_file(const char* path, int flags, const FileIdentity& wanted) noexcept {
  int fd = kernel::open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  FileIdentity found;
  if (fd >= 0 && (!identify(fd, found) || !same(found, wanted))) {
    kernel::close(fd);
    return -1;
  }
  return fd >= 0 ? fd : -1;
}

long write_no_signal(int fd, std::string_view text) noexcept {
  WriteSignalsHeld held;
  long n = kernel::write(fd, text);
  held.forget(n);
  return n;
}

namespace {

int write_all(int fd, std::string_view text) noexcept {
  while (!text.empty()) {
    long n = kernel::write(fd, text);
    if (n < 0 && n != -EINTR) {
      return static_cast<int>(-n);
    }
    text.remove_prefix(n > 0 ? static_cast<size_t>(n) : 0);
  }
  return 0;
}

// Of a regular file, within the limit of the file's size.
int append_to(int fd, std::string_view text) noexcept {
  struct stat info;
  int error = -kernel::status(fd, info);
  if (error == 0 && !S_ISREG(info.st_mode)) {
    error = EINVAL;
  }
  if (error == 0 && !within_file_limit(static_cast<uint64_t>(info.st_size) + text.size())) {
    error = EFBIG;
  }
  return error == 0 ? write_all(fd, text) : error;
}

}  // namespace

int create_file(const char* path, std::string_view text, FileIdentity& out) noexcept {
  int fd = kernel::open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_CREAT | O_EXCL, 0600);
  if (fd < 0) {
    return -fd;
  }
  kernel::change_mode(fd, 0600);
  int error = identify(fd, out) ? append_to(fd, text) : EIO;
  kernel::close(fd);
  return error;
}

int append_file(const char* path, std::string_view text, const FileIdentity& wanted) noexcept {
  int fd = open_file(path, O_WRONLY | O_APPEND, wanted);
  if (fd < 0) {
    return ESTALE;
  }
  int error = append_to(fd, text);
  kernel::close(fd);
  return error;
}

int replace_file(const char* path, std::string_view text) noexcept {
  Text<1300> fresh;
  fresh.put(path).put(".new").put('\0');
  if (fresh.full()) {
    return ENAMETOOLONG;
  }
  kernel::remove(fresh.data());
  FileIdentity made;
  int error = create_file(fresh.data(), text, made);
  if (error == 0) {
    error = -kernel::rename(fresh.data(), path);
  }
  if (error != 0) {
    kernel::remove(fresh.data());
  }
  return error;
}

int rewrite_file(const char* path, std::string_view text) noexcept {
  int fd = kernel::open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0600);
  if (fd < 0) {
    return -fd;
  }
  struct stat info;
  int error = -kernel::status(fd, info);
  error = error != 0 ? error : S_ISREG(info.st_mode) ? 0 : EINVAL;
  if (error == 0 && !within_file_limit(text.size())) {
    error = EFBIG;
  }
  if (error == 0) {
    error = -kernel::cut(fd, 0);
  }
  if (error == 0) {
    error = write_all(fd, text);
  }
  kernel::close(fd);
  return error;
}

}  // namespace xlog
