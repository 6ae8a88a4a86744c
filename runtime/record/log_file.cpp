#include "runtime/record/log_file.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/signals_held.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "runtime/record/row_writer.h"

namespace xlog {

namespace {

constexpr uint64_t kFirstWindow = 64 << 10;
constexpr uint64_t kLargestWindow = 4 << 20;
constexpr uint64_t kBlankStep = 64 << 10;
constexpr uint64_t kPage = 4096;

struct BlankPage {
  char text[kPage];
  constexpr BlankPage() noexcept : text{} {
    for (char& each : text) {
      each = '\n';
    }
  }
};
constexpr BlankPage kBlank;

// Empty lines from `begin` to the next end of a page, or to `end`; bytes written, or a negative errno.
long write_blank(int fd, uint64_t begin, uint64_t end) noexcept {
  uint64_t size = kPage - begin % kPage;
  size = size < end - begin ? size : end - begin;
  return kernel::write_at(fd, {kBlank.text, size}, begin);
}

// The whole text, or not.
bool write_whole(int fd, uint64_t at, std::string_view text) noexcept {
  while (!text.empty()) {
    long n = kernel::write_at(fd, text, at);
    if (n <= 0 && n != -EINTR) {
      return false;
    }
    at += n > 0 ? static_cast<uint64_t>(n) : 0;
    text.remove_prefix(n > 0 ? static_cast<size_t>(n) : 0);
  }
  return true;
}

LogFailure failure_of(long error) noexcept {
  return error == -ENOSPC || error == -EDQUOT ? LogFailure::full : error == -EFBIG ? LogFailure::file_limit : LogFailure::gone;
}

unsigned decimal_digits(uint64_t value) noexcept {
  unsigned n = 1;
  while (value >= 10) {
    value /= 10;
    ++n;
  }
  return n;
}

}  // namespace

// The stem is this run's alone: where another run left a companion file, the next number is taken.
bool LogFile::has_companions() noexcept {
  Text<kPath + 16> path;
  for (std::string_view suffix : {".stacks.csv", ".run.json", ".control"}) {
    path.clear();
    path.put(stem()).put(suffix).put('\0');
    struct stat info;
    if (kernel::status_of_path(path.data(), info) == 0) {
      return true;
    }
  }
  return false;
}

int LogFile::create_numbered(std::string_view base, unsigned number) noexcept {
  TextSink path(path_, kPath - 1);
  path.put(base);
  if (number != 0) {
    path.put('.').decimal(number);
  }
  stem_size_ = path.size();
  path.put(".csv");
  if (path.full()) {
    return -ENAMETOOLONG;
  }
  path_[path.size()] = '\0';
  int fd = kernel::open(path_, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_CREAT | O_EXCL, 0600);
  if (fd >= 0 && has_companions()) {
    kernel::remove(path_);
    kernel::close(fd);
    return -EEXIST;
  }
  return fd;
}

int LogFile::create(std::string_view base, uint64_t max_bytes) noexcept {
  int fd = -EEXIST;
  for (unsigned number = 0; number < 10'000 && fd == -EEXIST; ++number) {
    fd = create_numbered(base, number);
  }
  if (fd < 0) {
    return -fd;
  }
  kernel::change_mode(fd, 0600);  // the umask may have taken the owner's bits
  if (!identify(fd, identity_)) {
    kernel::close(fd);
    return EIO;
  }
  max_bytes_ = max_bytes;
  char probe = 0;
  if (can_map(fd) && write_mapped(&probe, "x")) {
    kernel::close(fd);
    descriptor_ = -1;
    mode_.store(Mode::window, std::memory_order_relaxed);
  } else {
    descriptor_ = move_high(fd);
    mode_.store(Mode::positioned, std::memory_order_relaxed);
  }
  return 0;
}

int LogFile::open_stream(const char* path) noexcept {
  int fd = kernel::open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    return -fd;
  }
  identify(fd, identity_);
  TextSink(path_, kPath - 1).put(path).put('\0');
  stem_size_ = strlen(path);
  descriptor_ = move_high(fd);
  max_bytes_ = UINT64_MAX;
  mode_.store(Mode::stream, std::memory_order_relaxed);
  return descriptor_ >= 0 ? 0 : EMFILE;
}

int LogFile::reopen() const noexcept { return open_file(path_, mode() == Mode::stream ? O_WRONLY : O_RDWR, identity_); }

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

// Takes the space, and fills it with empty lines, while it is a file: a store to memory could be fatal when it is cut. Where
// it was cut already, rows still go to what is mapped before `begin`, so that gets its empty lines again.
LogFailure LogFile::prepare(int fd, uint64_t begin, uint64_t bytes) noexcept {
  WriteSignalsHeld held;
  struct stat info;
  uint64_t at = begin;
  if (kernel::status(fd, info) == 0 && static_cast<uint64_t>(info.st_size) < begin) {
    uint64_t mapped = begin > kLargestWindow ? begin - kLargestWindow : 0;
    at = static_cast<uint64_t>(info.st_size) > mapped ? static_cast<uint64_t>(info.st_size) : mapped;
  }
  long result = 0;
  do {
    result = kernel::reserve(fd, begin, bytes);
  } while (result == -EINTR);
  while (result >= 0 && at < begin + bytes) {
    result = write_blank(fd, at, begin + bytes);
    at += result > 0 ? static_cast<uint64_t>(result) : 0;
    result = result == -EINTR ? 0 : result == 0 ? -EIO : result;
  }
  held.forget(result);
  return result >= 0 ? LogFailure::none : failure_of(result);
}

LogFailure LogFile::add_window(uint64_t bytes) noexcept {
  uint64_t begin = limit_.load(std::memory_order_relaxed);
  int fd = reopen();
  if (fd < 0) {
    return LogFailure::gone;
  }
  LogFailure failure = prepare(fd, begin, bytes);
  void* data = MAP_FAILED;
  if (failure == LogFailure::none) {
    data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, static_cast<off_t>(begin));
    failure = data == MAP_FAILED ? LogFailure::gone : LogFailure::none;
  }
  if (data != MAP_FAILED) {
    madvise(data, bytes, MADV_DONTFORK);  // or a child's rows would land in the parent's file
    if (!windows_.add(static_cast<char*>(data), begin, bytes)) {
      munmap(data, bytes);
      failure = LogFailure::gone;
    }
  }
  if (failure == LogFailure::none) {
    map_first_page(fd);
    limit_.store(begin + bytes, std::memory_order_release);
  }
  kernel::close(fd);
  return failure;
}

// Stays mapped, so that what stands there can be changed when the file cannot be opened any more: after setuid or chroot,
// or without a descriptor to be had.
void LogFile::map_first_page(int fd) noexcept {
  if (first_page_.load(std::memory_order_relaxed) != nullptr) {
    return;
  }
  void* page = mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (page != MAP_FAILED) {
    madvise(page, kPage, MADV_DONTFORK);
    first_page_.store(static_cast<char*>(page), std::memory_order_release);
  }
}

LogFailure LogFile::add_blank(uint64_t bytes) noexcept {
  bool keep = false;
  int fd = borrow_descriptor(keep);
  if (fd < 0) {
    return LogFailure::gone;
  }
  WriteSignalsHeld held;
  long result = 0;
  uint64_t limit = limit_.load(std::memory_order_relaxed);
  for (uint64_t end = limit + bytes; limit < end && (result >= 0 || result == -EINTR);) {
    result = write_blank(fd, limit, end);
    result = result == 0 ? -ENOSPC : result;
    limit += result > 0 ? static_cast<uint64_t>(result) : 0;
    limit_.store(limit, std::memory_order_release);
  }
  held.forget(result);
  if (!keep) {
    kernel::close(fd);
  }
  return result > 0 ? LogFailure::none : failure_of(result);
}

LogFailure LogFile::extend(size_t size) noexcept {
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
  SignalsHeld held;
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
    // The beginning of a row is written at once, which a kernel does within a page.
    uint64_t skipped = mode != Mode::stream && !settled && left_of_page < kWrittenLast ? left_of_page : 0;
    at += skipped;
    seq = now.seq + (numbered ? 1 : 0);
    uint64_t whole = size + (numbered ? decimal_digits(seq) : 0);
    if (mode != Mode::stream && (whole > max_bytes || at > max_bytes - whole)) {
      return LogFailure::max_bytes;
    }
    if (settled && !is_cut_.load(std::memory_order_acquire)) {
      SignalsHeld held;
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
      if (skipped != 0 && out.mapped) {
        windows_.skip(at - skipped, skipped);
      }
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

bool LogFile::write_at(uint64_t offset, std::string_view text) noexcept {
  bool keep = false;
  int fd = borrow_descriptor(keep);
  bool written = fd >= 0 && within_file_limit(offset + text.size());
  // The kernel writes a page at a time, and a process that is killed between two has written the first.
  if (written && offset / kPage != (offset + text.size() - 1) / kPage) {
    size_t last = text.size() < kWrittenLast ? text.size() : kWrittenLast;
    written = write_whole(fd, offset + last, text.substr(last));
    text = text.substr(0, last);
  }
  written = written && write_whole(fd, offset, text);
  if (fd >= 0 && !keep) {
    kernel::close(fd);
  }
  return written;
}

// A row that fits the pipe is written whole or not at all. Where a device took a part of it, the next begins a new line.
bool LogFile::write_stream(std::string_view row) noexcept {
  int fd = held_descriptor();
  if (fd < 0) {
    return false;
  }
  std::atomic_ref<bool> torn(is_torn_);
  if (torn.exchange(false, std::memory_order_relaxed) && write_no_signal(fd, "\n") != 1) {
    torn.store(true, std::memory_order_relaxed);
    return false;
  }
  long n = write_no_signal(fd, row);
  if (n > 0 && n != static_cast<long>(row.size())) {
    torn.store(true, std::memory_order_relaxed);
  }
  return n == static_cast<long>(row.size());
}

bool LogFile::fill(const LogPlace& place, std::string_view head, std::string_view middle, std::string_view tail) noexcept {
  if (place.mapped && windows_.fill(place.offset, place.size, head, middle, tail)) {
    return true;
  }
  Text<kLongestRow> row;
  row.put(head).put(middle).put(tail);
  return is_stream() ? write_stream(row.view()) : (!place.mapped || reaches(place)) && write_at(place.offset, row.view());
}

// Nobody cut it off: the kernel was not allowed to write to our memory, as in a sandbox that the program entered.
bool LogFile::reaches(const LogPlace& place) noexcept {
  int fd = reopen();
  struct stat info;
  bool whole = fd >= 0 && kernel::status(fd, info) == 0 && static_cast<uint64_t>(info.st_size) >= place.offset + place.size;
  if (fd >= 0) {
    kernel::close(fd);
  }
  return whole;
}

bool LogFile::overwrite_mapped(uint64_t offset, std::string_view text) noexcept {
  char* page = first_page_.load(std::memory_order_acquire);
  return page != nullptr && offset + text.size() <= kPage && write_mapped(page + offset, text);
}

bool LogFile::overwrite(uint64_t offset, std::string_view text) noexcept { return mode() != Mode::stream && write_at(offset, text); }

bool LogFile::is_writable_within(unsigned milliseconds) noexcept {
  int fd = held_descriptor();
  for (; fd >= 0 && !kernel::is_writable(fd); --milliseconds) {
    if (milliseconds == 0) {
      return false;
    }
    kernel::sleep(1'000'000);
  }
  return fd >= 0;
}

void LogFile::settle() noexcept {
  constexpr unsigned kPatience = 200;
  SignalsHeld held;
  if (lock_.try_lock_for(kPatience)) {
    settle_locked();
    lock_.unlock();
  }
}

void LogFile::settle_locked() noexcept {
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
    kernel::cut(fd, now.place);
    kernel::close(fd);
  }
  is_cut_.store(true, std::memory_order_release);
}

}  // namespace xlog
