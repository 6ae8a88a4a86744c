#include "runtime/record/log_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "runtime/record/row_writer.h"

namespace xlog {

namespace {

constexpr uint64_t kFirstWindow = 64 << 10;
constexpr uint64_t kLargestWindow = 4 << 20;
constexpr uint64_t kBlankStep = 64 << 10;
constexpr uint64_t kPage = 4096;
constexpr int kOpenFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

unsigned decimal_digits(uint64_t value) noexcept {
  unsigned n = 1;
  while (value >= 10) {
    value /= 10;
    ++n;
  }
  return n;
}

}  // namespace

int LogFile::create(std::string_view base, uint64_t max_bytes) noexcept {
  int fd = -1;
  for (unsigned attempt = 0; attempt < 10'000; ++attempt) {
    TextSink path(path_, kPath - 1);
    path.put(base);
    if (attempt != 0) {
      path.put('.').decimal(attempt);
    }
    stem_size_ = path.size();
    path.put(".csv");
    if (path.full()) {
      return ENAMETOOLONG;
    }
    path_[path.size()] = '\0';
    fd = open(path_, kOpenFlags | O_CREAT | O_EXCL, 0600);
    if (fd >= 0 || errno != EEXIST) {
      break;
    }
  }
  if (fd < 0) {
    return errno;
  }
  fchmod(fd, 0600);  // the umask may have taken the owner's bits
  if (!identify(fd, identity_)) {
    int error = errno;
    close(fd);
    return error;
  }
  max_bytes_ = max_bytes;
  if (can_map(fd)) {
    close(fd);
    descriptor_ = -1;
    mode_.store(Mode::window, std::memory_order_relaxed);
  } else {
    descriptor_ = move_high(fd);
    mode_.store(Mode::positioned, std::memory_order_relaxed);
  }
  return 0;
}

int LogFile::open_stream(const char* path) noexcept {
  int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return errno;
  }
  identify(fd, identity_);
  TextSink(path_, kPath - 1).put(path).put('\0');
  stem_size_ = strlen(path);
  descriptor_ = move_high(fd);
  max_bytes_ = UINT64_MAX;
  mode_.store(Mode::stream, std::memory_order_relaxed);
  return descriptor_ >= 0 ? 0 : EMFILE;
}

int LogFile::reopen() const noexcept {
  int fd = open(path_, mode() == Mode::stream ? O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY : kOpenFlags);
  FileIdentity found;
  if (fd >= 0 && (!identify(fd, found) || !same(found, identity_))) {
    close(fd);
    return -1;
  }
  return fd;
}

int LogFile::held_descriptor() noexcept {
  std::atomic_ref<int> held(descriptor_);
  int fd = held.load(std::memory_order_relaxed);
  FileIdentity found;
  if (fd >= 0 && identify(fd, found) && same(found, identity_)) {
    return fd;
  }
  fd = reopen();  // the program closed ours, and may have its own there by now
  if (fd >= 0) {
    fd = move_high(fd);
    held.store(fd, std::memory_order_relaxed);
  }
  return fd;
}

LogFailure LogFile::add_window(uint64_t bytes) noexcept {
  uint64_t begin = limit_.load(std::memory_order_relaxed);
  int fd = reopen();
  if (fd < 0) {
    return LogFailure::gone;
  }
  int failed = 0;
  do {
    failed = fallocate(fd, 0, static_cast<off_t>(begin), static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (failed == EINTR);
  void* data = MAP_FAILED;
  if (failed == 0) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(begin));
  }
  close(fd);
  if (data == MAP_FAILED) {
    return failed == EFBIG ? LogFailure::file_limit : failed == ENOSPC || failed == EDQUOT ? LogFailure::full : LogFailure::gone;
  }
  // Faults that could fail are taken here, as an error; EINVAL is a kernel before 5.14.
  if (madvise(data, bytes, MADV_POPULATE_WRITE) != 0 && errno != EINVAL) {
    munmap(data, bytes);
    return LogFailure::full;
  }
  madvise(data, bytes, MADV_DONTFORK);  // or a child's rows would land in the parent's file
  std::memset(data, '\n', bytes);
  if (!windows_.add(static_cast<char*>(data), begin, bytes)) {
    munmap(data, bytes);
    return LogFailure::gone;
  }
  limit_.store(begin + bytes, std::memory_order_release);
  return LogFailure::none;
}

LogFailure LogFile::add_blank(uint64_t bytes) noexcept {
  bool keep = false;
  int fd = borrow_descriptor(keep);
  if (fd < 0) {
    return LogFailure::gone;
  }
  char blank[1024];
  std::memset(blank, '\n', sizeof blank);
  bool full = false;
  uint64_t limit = limit_.load(std::memory_order_relaxed);
  for (uint64_t end = limit + bytes; limit < end && !full;) {
    ssize_t n = pwrite(fd, blank, sizeof blank, static_cast<off_t>(limit));
    if (n > 0) {
      limit += static_cast<uint64_t>(n);
      limit_.store(limit, std::memory_order_release);
    }
    full = n <= 0 && errno != EINTR;
  }
  if (!keep) {
    close(fd);
  }
  return full ? LogFailure::full : LogFailure::none;
}

// What is written last of a row lies in one window: of a place too near the end nothing is used.
void LogFile::keep_begins_whole() noexcept {
  Next now = read_next();
  uint64_t left = limit_.load(std::memory_order_relaxed) - now.place;
  if (left != 0 && left < kWrittenLast && replace_next(now, {now.place + left, now.seq})) {
    windows_.skip(now.place, left);
  }
}

LogFailure LogFile::extend(size_t size) noexcept {
  if (mode() == Mode::window) {
    keep_begins_whole();
  }
  bool mapped = mode() == Mode::window;
  uint64_t bytes = kBlankStep;
  if (mapped) {
    uint64_t limit = limit_.load(std::memory_order_relaxed);
    bytes = limit < kFirstWindow ? kFirstWindow : limit > kLargestWindow ? kLargestWindow : limit;
  }
  while (bytes < size) {
    bytes *= 2;
  }
  for (; bytes >= 4096; bytes /= 2) {  // near the end of the disk, or of a limit, smaller steps still fit
    if (!within_file_limit(limit_.load(std::memory_order_relaxed) + bytes)) {
      if (bytes / 2 < 4096) {
        return LogFailure::file_limit;
      }
      continue;
    }
    LogFailure failure = mapped ? add_window(bytes) : add_blank(bytes);
    if (failure != LogFailure::full || bytes / 2 < 4096) {
      return failure;
    }
  }
  return LogFailure::full;
}

LogFailure LogFile::still_refused() noexcept {
  LogFailure refused = refused_.load(std::memory_order_relaxed);
  bool still = refused != LogFailure::none && coarse_time() < refused_until_.load(std::memory_order_relaxed);
  return still ? refused : LogFailure::none;
}

// One extension is enough for a row as it was read; another thread may have made it, or claimed what it gave.
LogFailure LogFile::extend_for(uint64_t end, size_t size) noexcept {
  constexpr uint64_t kPatience = 100'000'000;
  LogFailure failure = still_refused();
  if (failure != LogFailure::none) {
    return failure;
  }
  LockGuard guard(lock_);
  failure = still_refused();
  if (failure == LogFailure::none && end > limit_.load(std::memory_order_relaxed)) {
    failure = extend(size);
    refused_until_.store(coarse_time() + kPatience, std::memory_order_relaxed);
    refused_.store(failure, std::memory_order_relaxed);
  }
  return failure;
}

LogFile::Next LogFile::read_next() noexcept {
  return {std::atomic_ref(next_.place).load(std::memory_order_relaxed), std::atomic_ref(next_.seq).load(std::memory_order_relaxed)};
}

// Two words that do not belong together are not what stands there, so that a torn read replaces nothing.
bool LogFile::replace_next(const Next& expected, const Next& wanted) noexcept {
  using Both = unsigned __int128;
  auto both = [](const Next& next) { return static_cast<Both>(next.seq) << 64 | next.place; };
  return __sync_bool_compare_and_swap(reinterpret_cast<Both*>(&next_), both(expected), both(wanted));
}

LogFailure LogFile::claim_row(size_t size, bool numbered, uint64_t max_bytes, LogPlace& out, uint64_t& seq) noexcept {
  for (;;) {
    Next now = read_next();
    bool settled = (now.place & kSettled) != 0;
    uint64_t at = now.place & ~kSettled;
    Mode mode = this->mode();
    uint64_t left_of_page = kPage - at % kPage;
    if (mode == Mode::positioned && !settled && left_of_page < kWrittenLast) {
      at += left_of_page;  // as between windows
    }
    seq = now.seq + (numbered ? 1 : 0);
    uint64_t whole = size + (numbered ? decimal_digits(seq) : 0);
    if (mode != Mode::stream && (whole > max_bytes || at > max_bytes - whole)) {
      return LogFailure::max_bytes;
    }
    if (settled && !is_cut_.load(std::memory_order_acquire)) {
      LockGuard guard(lock_);  // a row written now would be cut off
      continue;
    }
    if (mode != Mode::stream && !settled && at + whole > limit_.load(std::memory_order_acquire)) {
      LogFailure failure = extend_for(at + whole, whole);
      if (failure != LogFailure::none) {
        return failure;
      }
      continue;
    }
    if (replace_next(now, {(at + whole) | (settled ? kSettled : 0), seq})) {
      out = {.offset = at, .size = static_cast<uint32_t>(whole), .mapped = mode == Mode::window && !settled};
      return LogFailure::none;
    }
  }
}

LogFailure LogFile::claim(size_t size, LogPlace& out, uint64_t& seq) noexcept { return claim_row(size, true, max_bytes_, out, seq); }

LogFailure LogFile::claim(size_t size, LogPlace& out) noexcept {
  uint64_t seq = 0;
  return claim_row(size, false, max_bytes_, out, seq);
}

LogFailure LogFile::claim_beyond_max(size_t size, LogPlace& out) noexcept {
  uint64_t seq = 0;
  return claim_row(size, false, UINT64_MAX, out, seq);
}

int LogFile::borrow_descriptor(bool& keep) noexcept {
  int fd = held_descriptor();
  keep = fd >= 0;
  return keep ? fd : reopen();
}

void LogFile::write_at(uint64_t offset, std::string_view text) noexcept {
  bool keep = false;
  int fd = borrow_descriptor(keep);
  if (fd < 0 || !within_file_limit(offset + text.size())) {
    return;
  }
  auto write = [fd](uint64_t at, std::string_view part) {
    while (!part.empty()) {
      ssize_t n = pwrite(fd, part.data(), part.size(), static_cast<off_t>(at));
      if (n < 0 && errno == EINTR) {
        continue;
      }
      if (n <= 0) {
        break;
      }
      at += static_cast<uint64_t>(n);
      part.remove_prefix(static_cast<size_t>(n));
    }
  };
  // The kernel writes a page at a time, and a process that is killed between two has written the first.
  size_t last = 0;
  if (offset / kPage != (offset + text.size() - 1) / kPage) {
    last = text.size() < kWrittenLast ? text.size() : kWrittenLast;
    write(offset + last, text.substr(last));
    text = text.substr(0, last);
  }
  write(offset, text);
  if (!keep) {
    close(fd);
  }
}

void LogFile::fill(const LogPlace& place, std::string_view head, std::string_view middle, std::string_view tail) noexcept {
  if (place.mapped) {
    windows_.fill(place.offset, place.size, head, middle, tail);
    return;
  }
  Text<kLongestRow> row;
  row.put(head).put(middle).put(tail);
  if (!is_stream()) {
    write_at(place.offset, row.view());
    return;
  }
  int fd = held_descriptor();
  if (fd >= 0) {
    write_no_signal(fd, row.view());
  }
}

void LogFile::overwrite(uint64_t offset, std::string_view text) noexcept {
  if (mode() != Mode::stream) {
    write_at(offset, text);
  }
}

void LogFile::settle() noexcept {
  LockGuard guard(lock_);
  Next now = read_next();
  if (is_stream() || (now.place & kSettled) != 0 || (mode() == Mode::window && !windows_.is_filled_to(now.place)) ||
      !replace_next(now, {now.place | kSettled, now.seq})) {
    return;  // somebody is filling a row there, or claims one
  }
  if (mode() == Mode::window) {
    windows_.drop_last();
    std::atomic_ref(descriptor_).store(-1, std::memory_order_relaxed);
    mode_.store(Mode::positioned, std::memory_order_relaxed);
  }
  int fd = reopen();
  if (fd >= 0) {
    static_cast<void>(ftruncate(fd, static_cast<off_t>(now.place)));
    close(fd);
  }
  is_cut_.store(true, std::memory_order_release);
}

}  // namespace xlog
