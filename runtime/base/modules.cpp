#include "runtime/base/modules.h"

#include <elf.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/loaded_files.h"

namespace xlog {

namespace {

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
  char exe[512];
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

void describe_address(uintptr_t address, ModuleAddress& out) noexcept {
  Query query{address, &out};
  walk_loaded_files(visit, &query);
  if (!out.known) {
    out.path.put("[unknown]");  // code made at run time
    out.offset = address;
  }
}

}  // namespace xlog
