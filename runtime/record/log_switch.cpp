#include "runtime/record/log_switch.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include <cerrno>

#include "runtime/base/system_calls.h"
#include "runtime/base/text.h"

namespace xlog {

namespace {

constexpr size_t kBytes = sizeof(ControlPage);
constexpr uint64_t kPause = 4'000'000;

}  // namespace

int LogSwitch::open(std::string_view stem, bool on) noexcept {
  TextSink path(path_, sizeof path_ - 1);
  path.put(stem).put(ControlPage::kSuffix);
  path_[path.size()] = '\0';
  char page[kBytes] = {};
  uint32_t word = on ? 1 : 0;
  memcpy(page, ControlPage::kMagic.data(), ControlPage::kMagic.size());
  memcpy(page + offsetof(ControlPage, wanted), &word, sizeof word);
  memcpy(page + offsetof(ControlPage, serving), &word, sizeof word);
  int error = path.full() ? ENAMETOOLONG : create_file(path_, {page, kBytes}, identity_);
  if (error != 0) {
    if (error != ENAMETOOLONG && error != EEXIST) {
      kernel::remove(path_);
    }
    return error;
  }
  int fd = open_file(path_, O_RDONLY, identity_);
  int saved = errno;
  void* mapped = fd >= 0 ? mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  error = mapped == MAP_FAILED ? EIO : 0;
  if (error == 0) {
    madvise(mapped, kBytes, MADV_DONTFORK);
    descriptor_.store(move_high(fd), std::memory_order_relaxed);
    wanted_.store(on, std::memory_order_relaxed);
    is_open_.store(true, std::memory_order_release);
  } else {
    kernel::close(fd);
    kernel::remove(path_);
  }
  errno = saved;
  return error;
}

// Whoever comes first when it is time. What cannot be read changes nothing.
void LogSwitch::look(uint64_t now) noexcept {
  uint64_t due = next_look_.load(std::memory_order_relaxed);
  if (now < due || !next_look_.compare_exchange_strong(due, now + kPause, std::memory_order_relaxed)) {
    return;
  }
  int fd = descriptor_.load(std::memory_order_relaxed);
  FileIdentity found;
  bool kept = fd >= 0 && identify(fd, found) && same(found, identity_);
  fd = kept ? fd : open_file(path_, O_RDONLY, identity_);
  uint32_t word = 0;
  if (fd >= 0 && kernel::read_at(fd, &word, sizeof word, offsetof(ControlPage, wanted)) == sizeof word) {
    wanted_.store(word != 0, std::memory_order_relaxed);
  }
  if (!kept && fd >= 0) {
    descriptor_.store(move_high(fd), std::memory_order_relaxed);
  }
}

void LogSwitch::tell(bool on) const noexcept {
  int fd = is_open_.load(std::memory_order_acquire) ? open_file(path_, O_WRONLY, identity_) : -1;
  if (fd >= 0) {
    uint32_t word = on ? 1 : 0;
    kernel::write_at(fd, {reinterpret_cast<const char*>(&word), sizeof word}, offsetof(ControlPage, serving));
    kernel::close(fd);
  }
}

void LogSwitch::remove() const noexcept {
  if (is_open_.load(std::memory_order_acquire)) {
    kernel::remove(path_);
  }
}

}  // namespace xlog
