#include "runtime/record/log_switch.h"

#include <fcntl.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/text.h"
#include "runtime/record/file_io.h"

namespace xlog {

void LogSwitch::open(std::string_view stem, bool on) noexcept {
  constexpr size_t kBytes = sizeof(ControlPage);
  TextSink path(path_, sizeof path_ - 1);
  path.put(stem).put(ControlPage::kSuffix);
  path_[path.size()] = '\0';
  char page[kBytes] = {};
  uint32_t word = on ? 1 : 0;
  memcpy(page, ControlPage::kMagic.data(), ControlPage::kMagic.size());
  memcpy(page + offsetof(ControlPage, wanted), &word, sizeof word);
  memcpy(page + offsetof(ControlPage, serving), &word, sizeof word);
  int saved = errno;
  int error = path.full() ? ENAMETOOLONG : append_file(path_, {page, kBytes}, true);
  bool made = error != ENAMETOOLONG && error != EEXIST;
  int fd = error == 0 ? ::open(path_, O_RDONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
  void* mapped = fd >= 0 ? mmap(nullptr, kBytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
  if (fd >= 0) {
    close(fd);
  }
  if (mapped != MAP_FAILED) {
    madvise(mapped, kBytes, MADV_DONTFORK);
    page_.store(static_cast<const ControlPage*>(mapped), std::memory_order_release);
  } else if (made) {
    unlink(path_);
  }
  errno = saved;
}

void LogSwitch::tell(bool on) const noexcept {
  int saved = errno;
  int fd = page_.load(std::memory_order_acquire) != nullptr ? ::open(path_, O_WRONLY | O_NOFOLLOW | O_CLOEXEC) : -1;
  if (fd >= 0) {
    uint32_t word = on ? 1 : 0;
    static_cast<void>(pwrite(fd, &word, sizeof word, offsetof(ControlPage, serving)));
    close(fd);
  }
  errno = saved;
}

void LogSwitch::remove() const noexcept {
  int saved = errno;
  if (page_.load(std::memory_order_acquire) != nullptr) {
    unlink(path_);
  }
  errno = saved;
}

}  // namespace xlog
