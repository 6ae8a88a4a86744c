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
#include "runtime/record/file_io.h"

namespace xlog {

namespace {

constexpr uint64_t kFirstWindow = 64 << 10;
constexpr uint64_t kLargestWindow = 4 << 20;
constexpr uint64_t kBlankStep = 64 << 10;
constexpr int kOpenFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;

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
    mode_ = Mode::window;
  } else {
    descriptor_ = move_high(fd);
    mode_ = Mode::positioned;
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
  mode_ = Mode::stream;
  return descriptor_ >= 0 ? 0 : EMFILE;
}

int LogFile::reopen() const noexcept {
  int fd = open(path_, mode_ == Mode::stream ? O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY : kOpenFlags);
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

LogWindow* LogFile::free_window() noexcept {
  for (size_t i = 0; i < kWindows; ++i) {
    LogWindow& window = windows_[next_window_++ % kWindows];
    if (window.used.load(std::memory_order_acquire) == 0) {
      return &window;
    }
  }
  return nullptr;
}

LogFailure LogFile::add_window(uint64_t bytes) noexcept {
  LogWindow* window = free_window();
  int fd = window != nullptr ? reopen() : -1;
  if (fd < 0) {
    return LogFailure::gone;
  }
  int failed = 0;
  do {
    failed = fallocate(fd, 0, static_cast<off_t>(limit_), static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  } while (failed == EINTR);
  void* data = MAP_FAILED;
  if (failed == 0) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(limit_));
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
  window->data = static_cast<char*>(data);
  window->begin = limit_;
  window->size = bytes;
  window->filled.store(0, std::memory_order_relaxed);
  window->used.store(1, std::memory_order_release);
  last_ = window;
  limit_ += bytes;
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
  for (uint64_t done = 0; done < bytes && !full;) {
    ssize_t n = pwrite(fd, blank, sizeof blank, static_cast<off_t>(limit_));
    if (n > 0) {
      done += static_cast<uint64_t>(n);
      limit_ += static_cast<uint64_t>(n);
    }
    full = n <= 0 && errno != EINTR;
  }
  if (!keep) {
    close(fd);
  }
  return full ? LogFailure::full : LogFailure::none;
}

LogFailure LogFile::extend(size_t size) noexcept {
  bool mapped = mode_ == Mode::window;
  uint64_t bytes = kBlankStep;
  if (mapped) {
    bytes = limit_ < kFirstWindow ? kFirstWindow : limit_ > kLargestWindow ? kLargestWindow : limit_;
  }
  while (bytes < size) {
    bytes *= 2;
  }
  for (; bytes >= 4096; bytes /= 2) {  // near the end of the disk, or of a limit, smaller steps still fit
    if (!within_file_limit(limit_ + bytes)) {
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

LogFailure LogFile::claim(size_t size, LogPlace& out) noexcept {
  if (mode_ == Mode::stream) {
    out = {.offset = tail_, .size = static_cast<uint32_t>(size)};
    tail_ += size;
    return LogFailure::none;
  }
  if (size > max_bytes_ || tail_ > max_bytes_ - size) {
    return LogFailure::max_bytes;
  }
  if (settled_) {  // few rows still come: each extends the file by itself
    out = {.offset = tail_, .size = static_cast<uint32_t>(size)};
    tail_ += size;
    return LogFailure::none;
  }
  LogWindow* before = last_;
  bool crosses = tail_ < limit_;
  if (tail_ + size > limit_) {  // one extension is always enough: it is larger than a row
    LogFailure failure = extend(size);
    if (failure != LogFailure::none) {
      return failure;
    }
  }
  out.offset = tail_;
  out.size = static_cast<uint32_t>(size);
  out.first = mode_ == Mode::window ? (crosses && before != nullptr ? before : last_) : nullptr;
  out.second = out.first != last_ && mode_ == Mode::window ? last_ : nullptr;
  tail_ += size;
  return LogFailure::none;
}

LogFailure LogFile::claim_beyond_max(size_t size, LogPlace& out) noexcept {
  uint64_t saved = max_bytes_;
  max_bytes_ = UINT64_MAX;
  LogFailure failure = claim(size, out);
  max_bytes_ = saved;
  return failure;
}

void LogFile::count(LogWindow* window, uint64_t bytes) noexcept {
  char* data = window->data;
  uint64_t size = window->size;
  if (window->filled.fetch_add(bytes, std::memory_order_acq_rel) + bytes == size) {
    munmap(data, size);
    window->used.store(0, std::memory_order_release);
  }
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
  while (!text.empty()) {
    ssize_t n = pwrite(fd, text.data(), text.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      break;
    }
    offset += static_cast<uint64_t>(n);
    text.remove_prefix(static_cast<size_t>(n));
  }
  if (!keep) {
    close(fd);
  }
}

void LogFile::fill_windows(const LogPlace& place, std::string_view head, std::string_view middle, std::string_view tail) noexcept {
  uint64_t boundary = place.first->begin + place.first->size;
  uint64_t at = place.offset;
  for (std::string_view part : {head, middle, tail}) {
    uint64_t room = at < boundary ? boundary - at : 0;
    uint64_t here = part.size() < room ? part.size() : room;
    if (here != 0) {
      std::memcpy(place.first->data + (at - place.first->begin), part.data(), here);
    }
    if (here < part.size()) {
      std::memcpy(place.second->data + (at + here - place.second->begin), part.data() + here, part.size() - here);
    }
    at += part.size();
  }
  uint64_t in_first = place.second != nullptr ? boundary - place.offset : place.size;
  if (place.second != nullptr) {
    count(place.second, place.size - in_first);
  }
  count(place.first, in_first);
}

void LogFile::fill(const LogPlace& place, std::string_view head, std::string_view middle, std::string_view tail) noexcept {
  if (place.first != nullptr) {
    fill_windows(place, head, middle, tail);
    return;
  }
  Text<3072> row;
  row.put(head).put(middle).put(tail);
  if (mode_ != Mode::stream) {
    write_at(place.offset, row.view());
    return;
  }
  int fd = held_descriptor();
  if (fd >= 0) {
    write_no_signal(fd, row.view());
  }
}

void LogFile::overwrite(uint64_t offset, std::string_view text) noexcept {
  if (mode_ != Mode::stream) {
    write_at(offset, text);
  }
}

void LogFile::settle() noexcept {
  if (mode_ == Mode::window && last_ != nullptr) {
    uint64_t expected = tail_ - last_->begin;
    if (tail_ < last_->begin || last_->filled.load(std::memory_order_acquire) != expected) {
      return;  // somebody is filling a row there
    }
    if (last_->used.exchange(0, std::memory_order_acq_rel) != 0) {
      munmap(last_->data, last_->size);
    }
    last_ = nullptr;
  }
  if (mode_ == Mode::window) {
    descriptor_ = -1;
    mode_ = Mode::positioned;
  }
  if (mode_ == Mode::positioned) {
    int fd = reopen();
    if (fd >= 0) {
      settled_ = ftruncate(fd, static_cast<off_t>(tail_)) == 0;
      close(fd);
    }
  }
}

}  // namespace xlog
