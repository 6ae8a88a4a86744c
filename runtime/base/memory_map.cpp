#include "runtime/base/memory_map.h"

#include <sys/mman.h>

#include <cerrno>

namespace xlog {

void* map_kept(size_t bytes) noexcept {
  int saved = errno;
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  errno = saved;
  return data == MAP_FAILED ? nullptr : data;
}

void* map_state(size_t bytes) noexcept {
  void* data = map_kept(bytes);
  if (data != nullptr) {
    int saved = errno;
    madvise(data, bytes, MADV_WIPEONFORK);
    errno = saved;
  }
  return data;
}

void unmap_state(void* data, size_t bytes) noexcept {
  int saved = errno;
  munmap(data, bytes);
  errno = saved;
}

}  // namespace xlog
