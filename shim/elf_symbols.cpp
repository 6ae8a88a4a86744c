#include "shim/elf_symbols.h"

#include "runtime/base/loaded_files.h"

extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start;  // of this library, from the linker

namespace xlog {

namespace {

struct Search {
  bool (*matches)(const LoadedFile&, const void*);
  const void* context;
  LoadedFile found;
};

int visit(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  LoadedFile file(*info);
  if (file && search->matches(file, search->context)) {
    search->found = file;
    return 1;
  }
  return 0;
}

}  // namespace

LoadedFile::LoadedFile(const dl_phdr_info& info) noexcept : info_(info), begin_(UINTPTR_MAX) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type == PT_LOAD) {
      uintptr_t from = info.dlpi_addr + header.p_vaddr;
      begin_ = from < begin_ ? from : begin_;
      end_ = from + header.p_memsz > end_ ? from + header.p_memsz : end_;
    } else if (header.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(info.dlpi_addr + header.p_vaddr);
    }
  }
  table_ = ElfTable(info.dlpi_addr, dynamic);
}

bool LoadedFile::contains(const void* address) const noexcept {
  auto a = reinterpret_cast<uintptr_t>(address);
  return a >= begin_ && a < end_;
}

bool LoadedFile::is_ours() const noexcept { return contains(&__ehdr_start); }

void* LoadedFile::find(const char* name) const noexcept { return table_.find_function(name); }

std::span<const char> LoadedFile::find_extent(const char* name) const noexcept {
  const ElfW(Sym)* symbol = table_.look_up(name, ElfTable::is_any);
  return symbol != nullptr ? std::span(reinterpret_cast<const char*>(info_.dlpi_addr + symbol->st_value), symbol->st_size)
                           : std::span<const char>();
}

LoadedFile find_file(bool (*matches)(const LoadedFile&, const void*), const void* context) noexcept {
  Search search{matches, context, {}};
  walk_loaded_files(visit, &search);
  return search.found;
}

LoadedFile file_of(const void* address) noexcept {
  return find_file([](const LoadedFile& file, const void* where) { return file.contains(where); }, address);
}

LoadedFile driver_file() noexcept {
  return find_file([](const LoadedFile& file, const void*) { return file.is_driver(); }, nullptr);
}

bool started_with(uintptr_t begin) noexcept {
  struct State {
    uintptr_t begin;
    bool found;
  } state{begin, false};
  find_file(
      [](const LoadedFile& each, const void* context) {
        auto* s = const_cast<State*>(static_cast<const State*>(context));
        s->found = s->found || each.begin() == s->begin;
        return s->found || each.is_named("ld-linux");
      },
      &state);
  return state.found;
}

void* next_definition(const char* name) noexcept {
  struct State {
    const char* name;
    bool behind;   // of us
    bool started;  // the files that the program was started with were all seen: the loader itself is the last of them
  } state{name, false, false};
  LoadedFile file = find_file(
      [](const LoadedFile& each, const void* context) {
        auto* s = const_cast<State*>(static_cast<const State*>(context));
        s->started = s->started || each.is_named("ld-linux");
        if (each.is_ours()) {
          s->behind = true;
          return false;
        }
        return s->behind && (!s->started || each.is_driver() || each.is_nvml()) && each.find(s->name) != nullptr;
      },
      &state);
  return file ? file.find(name) : nullptr;
}

void* other_definition(const char* name) noexcept {
  LoadedFile file =
      find_file([](const LoadedFile& each,
                   const void* context) { return !each.is_ours() && each.find(static_cast<const char*>(context)) != nullptr; },
                name);
  return file ? file.find(name) : nullptr;
}

}  // namespace xlog
