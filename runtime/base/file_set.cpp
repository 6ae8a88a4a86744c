#include "runtime/base/file_set.h"

#include "runtime/base/loaded_files.h"
#include "runtime/base/plain_calls.h"

namespace xlog {

namespace {

// Stands where a file was forgotten, so that the search goes on behind it.
constexpr char kForgotten = 0;

struct Extent {
  uintptr_t begin;
  uintptr_t end;
};

Extent extent_of(const dl_phdr_info& file) noexcept {
  Extent out{UINTPTR_MAX, 0};
  for (int i = 0; i < file.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = file.dlpi_phdr[i];
    if (header.p_type == PT_LOAD) {
      uintptr_t from = file.dlpi_addr + header.p_vaddr;
      out.begin = from < out.begin ? from : out.begin;
      out.end = from + header.p_memsz > out.end ? from + header.p_memsz : out.end;
    }
  }
  return out;
}

}  // namespace

uint64_t unloaded_files() noexcept {
  uint64_t count = 0;
  walk_loaded_files(
      [](dl_phdr_info* info, size_t, void* data) {
        *static_cast<uint64_t*>(data) = info->dlpi_subs;
        return 1;  // each file tells the same
      },
      &count);
  return count;
}

bool FileSet::add(const dl_phdr_info& file) noexcept {
  for (File& each : files_) {
    const void* headers = each.headers.load(std::memory_order_acquire);
    if (headers == file.dlpi_phdr) {
      return true;
    }
    if ((headers == nullptr || headers == &kForgotten) && each.headers.compare_exchange_strong(headers, file.dlpi_phdr)) {
      auto [begin, end] = extent_of(file);
      each.begin.store(begin, std::memory_order_relaxed);
      each.end.store(end, std::memory_order_relaxed);
      each.name.store(hash_of_text(file.dlpi_name) | 1, std::memory_order_release);
      return true;
    }
    if (headers == file.dlpi_phdr) {
      return true;
    }
  }
  return false;
}

struct FileSet::Walk {
  const FileSet& set;
  uint64_t present;  // a bit for each file

  static int visit(dl_phdr_info* info, size_t, void* data) {
    auto& walk = *static_cast<Walk*>(data);
    for (size_t i = 0; i < kMost; ++i) {
      const void* headers = walk.set.files_[i].headers.load(std::memory_order_acquire);
      if (headers == nullptr) {
        break;
      }
      if (headers == info->dlpi_phdr) {
        uint64_t name = walk.set.files_[i].name.load(std::memory_order_acquire);
        if (name == 0 || name == (hash_of_text(info->dlpi_name) | 1)) {
          walk.present |= uint64_t{1} << i;
        }
      }
    }
    return 0;
  }
};

void FileSet::forget_unloaded(Gone gone, void* context) noexcept {
  uint64_t known = 0;  // before the walk: what is added meanwhile is there
  for (size_t i = 0; i < kMost; ++i) {
    const void* headers = files_[i].headers.load(std::memory_order_acquire);
    known |= headers != nullptr && headers != &kForgotten ? uint64_t{1} << i : 0;
  }
  if (known == 0) {
    return;
  }
  Walk walk{*this, 0};
  walk_loaded_files(Walk::visit, &walk);
  for (size_t i = 0; i < kMost; ++i) {
    if ((known & ~walk.present) >> i & 1) {
      uintptr_t begin = files_[i].begin.load(std::memory_order_relaxed);
      uintptr_t end = files_[i].end.load(std::memory_order_relaxed);
      const void* headers = files_[i].headers.load(std::memory_order_acquire);
      files_[i].name.store(0, std::memory_order_release);
      if (headers != &kForgotten && files_[i].headers.compare_exchange_strong(headers, &kForgotten)) {  // by one thread
        gone(begin, end, context);
      }
    }
  }
}

}  // namespace xlog
