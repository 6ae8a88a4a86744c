#include "runtime/base/modules.h"

#include <elf.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>

#include "runtime/base/file_set.h"
#include "runtime/base/loaded_files.h"

namespace xlog {

namespace {

constinit FileSet described{};                // the files in which described addresses lie
constinit std::atomic<bool> too_many{false};  // to know them all

// Where files were that are gone.
struct Range {
  std::atomic<uintptr_t> begin;
  std::atomic<uintptr_t> end;
  std::atomic<uint32_t> unloads;
};
constexpr uint32_t kRanges = 64;
constinit Range ranges[kRanges] = {};
constinit std::atomic<uint32_t> range_count{0};
constinit std::atomic<uint32_t> elsewhere{0};  // unloads that no range tells of

void add_range(uintptr_t begin, uintptr_t end, void*) noexcept {
  uint32_t known = range_count.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < known && i < kRanges; ++i) {
    if (ranges[i].begin.load(std::memory_order_relaxed) == begin && ranges[i].end.load(std::memory_order_relaxed) == end) {
      ranges[i].unloads.fetch_add(1, std::memory_order_acq_rel);
      return;
    }
  }
  uint32_t fresh = known < kRanges ? range_count.fetch_add(1, std::memory_order_acq_rel) : kRanges;
  if (fresh >= kRanges) {
    elsewhere.fetch_add(1, std::memory_order_acq_rel);
    return;
  }
  ranges[fresh].unloads.store(1, std::memory_order_relaxed);
  ranges[fresh].begin.store(begin, std::memory_order_relaxed);
  ranges[fresh].end.store(end, std::memory_order_release);
}

struct Query {
  uintptr_t address;
  ModuleAddress* out;
};

bool contains(const dl_phdr_info& info, uintptr_t address) noexcept {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type == PT_LOAD && address - info.dlpi_addr - header.p_vaddr < header.p_memsz) {
      return true;
    }
  }
  return false;
}

void put_build_id(const char* notes, size_t size, size_t align, TextSink& out) noexcept {
  for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= size;) {
    const auto* note = reinterpret_cast<const ElfW(Nhdr)*>(notes + at);
    size_t name = at + sizeof *note;
    size_t description = (name + note->n_namesz + align - 1) / align * align;
    if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0 &&
        description + note->n_descsz <= size) {
      for (size_t i = 0; i < note->n_descsz; ++i) {
        out.hex(static_cast<unsigned char>(notes[description + i]), 2);
      }
      return;
    }
    at = (description + note->n_descsz + align - 1) / align * align;
  }
}

void put_path(const char* name, TextSink& out) noexcept {
  if (name != nullptr && *name != '\0') {
    out.put(name);
    return;
  }
  static char exe[kLongestPath];  // the walk's lock is held, and what is read is always the same
  int saved = errno;
  ssize_t n = readlink("/proc/self/exe", exe, sizeof exe);
  errno = saved;
  out.put(n > 0 ? std::string_view(exe, static_cast<size_t>(n)) : std::string_view("[program]"));
}

int visit(dl_phdr_info* info, size_t, void* data) {
  auto* query = static_cast<Query*>(data);
  if (!contains(*info, query->address)) {
    return 0;
  }
  ModuleAddress& out = *query->out;
  put_path(info->dlpi_name, out.path);
  for (int i = 0; i < info->dlpi_phnum && out.build_id.size() == 0; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_NOTE) {
      put_build_id(reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr), header.p_memsz, header.p_align == 8 ? 8 : 4,
                   out.build_id);
    }
  }
  if (!described.add(*info)) {
    too_many.store(true, std::memory_order_relaxed);
  }
  out.offset = query->address - info->dlpi_addr;
  out.known = true;
  return 1;
}

struct Search {
  std::span<const std::string_view> names;
  TextSink* out;
};

int visit_name(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  std::string_view path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  std::string_view file = path.substr(path.rfind('/') + 1);
  for (std::string_view each : search->names) {
    if (file.starts_with(each)) {
      search->out->put(file);
      return 1;
    }
  }
  return 0;
}

}  // namespace

bool find_loaded(std::span<const std::string_view> names, TextSink& out) noexcept {
  Search search{names, &out};
  return walk_loaded_files(visit_name, &search) != 0;
}

void forget_described() noexcept {
  described.forget_unloaded(add_range, nullptr);
  if (too_many.load(std::memory_order_relaxed)) {
    elsewhere.fetch_add(1, std::memory_order_acq_rel);
  }
}

uint32_t generation_of(const uintptr_t* addresses, size_t count) noexcept {
  uint32_t known = range_count.load(std::memory_order_acquire);
  uint32_t sum = elsewhere.load(std::memory_order_acquire);
  for (uint32_t i = 0; i < known && i < kRanges; ++i) {
    uintptr_t end = ranges[i].end.load(std::memory_order_acquire);
    uintptr_t begin = ranges[i].begin.load(std::memory_order_relaxed);
    for (size_t k = 0; k < count; ++k) {
      if (addresses[k] - begin < end - begin) {
        sum += ranges[i].unloads.load(std::memory_order_acquire);
        break;
      }
    }
  }
  return sum;
}

void describe_address(uintptr_t address, ModuleAddress& out) noexcept {
  Query query{address, &out};
  walk_loaded_files(visit, &query);
  if (!out.known) {
    out.path.put("[unknown]");  // code made at run time
    out.offset = address;
  }
}

}  // namespace xlog
