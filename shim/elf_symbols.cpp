#include "shim/elf_symbols.h"

#include <cstring>

#include "runtime/base/loaded_files.h"

extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start;  // of this library, from the linker

namespace xlog {

namespace {

uint32_t gnu_hash_of(const char* name) noexcept {
  uint32_t h = 5381;
  for (; *name != '\0'; ++name) {
    h = h * 33 + static_cast<unsigned char>(*name);
  }
  return h;
}

bool is_function(const ElfW(Sym) & symbol) noexcept {
  unsigned type = ELF64_ST_TYPE(symbol.st_info);
  return type == STT_FUNC || type == STT_NOTYPE;
}
bool is_any(const ElfW(Sym) & symbol) noexcept { return is_function(symbol) || ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT; }

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

LoadedFile::LoadedFile(const dl_phdr_info& info) noexcept : base_(info.dlpi_addr), begin_(UINTPTR_MAX), name_(info.dlpi_name) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type == PT_LOAD) {
      uintptr_t from = base_ + header.p_vaddr;
      begin_ = from < begin_ ? from : begin_;
      end_ = from + header.p_memsz > end_ ? from + header.p_memsz : end_;
    } else if (header.p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(base_ + header.p_vaddr);
    }
  }
  // The loader relocates these entries in place, but not in every file (the vdso's it leaves).
  auto at = [this](const ElfW(Dyn) & entry) { return entry.d_un.d_ptr < base_ ? entry.d_un.d_ptr + base_ : entry.d_un.d_ptr; };
  for (; dynamic != nullptr && dynamic->d_tag != DT_NULL; ++dynamic) {
    switch (dynamic->d_tag) {
      case DT_SYMTAB:
        symbols_ = reinterpret_cast<const ElfW(Sym)*>(at(*dynamic));
        break;
      case DT_STRTAB:
        strings_ = reinterpret_cast<const char*>(at(*dynamic));
        break;
      case DT_GNU_HASH:
        gnu_hash_ = reinterpret_cast<const uint32_t*>(at(*dynamic));
        break;
      case DT_HASH:
        sysv_hash_ = reinterpret_cast<const uint32_t*>(at(*dynamic));
        break;
      default:
        break;
    }
  }
}

bool LoadedFile::contains(const void* address) const noexcept {
  auto a = reinterpret_cast<uintptr_t>(address);
  return a >= begin_ && a < end_;
}

bool LoadedFile::is_ours() const noexcept { return contains(&__ehdr_start); }

std::string_view LoadedFile::file_name() const noexcept {
  std::string_view path = name_ != nullptr ? name_ : "";
  return path.substr(path.rfind('/') + 1);
}

void* LoadedFile::find(const char* name) const noexcept {
  const ElfW(Sym)* symbol = look_up(name, is_function);
  return symbol != nullptr ? reinterpret_cast<void*>(base_ + symbol->st_value) : nullptr;
}

std::span<const char> LoadedFile::find_extent(const char* name) const noexcept {
  const ElfW(Sym)* symbol = look_up(name, is_any);
  return symbol != nullptr ? std::span(reinterpret_cast<const char*>(base_ + symbol->st_value), symbol->st_size) : std::span<const char>();
}

const ElfW(Sym) * LoadedFile::look_up(const char* name, bool (*wanted)(const ElfW(Sym) & symbol)) const noexcept {
  auto matches = [&](uint32_t i) {
    const ElfW(Sym)& symbol = symbols_[i];
    return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 && wanted(symbol) && std::strcmp(strings_ + symbol.st_name, name) == 0;
  };
  if (symbols_ == nullptr || strings_ == nullptr) {
    return nullptr;
  }
  if (gnu_hash_ != nullptr) {
    uint32_t buckets = gnu_hash_[0];
    uint32_t first = gnu_hash_[1];
    uint32_t bloom_words = gnu_hash_[2];
    const auto* bloom = reinterpret_cast<const ElfW(Addr)*>(gnu_hash_ + 4);
    const auto* bucket = reinterpret_cast<const uint32_t*>(bloom + bloom_words);
    const uint32_t* chain = bucket + buckets;
    uint32_t hash = gnu_hash_of(name);
    uint32_t i = buckets != 0 ? bucket[hash % buckets] : 0;
    for (; i >= first && i != 0; ++i) {
      uint32_t entry = chain[i - first];
      if ((entry | 1) == (hash | 1) && matches(i)) {
        return &symbols_[i];
      }
      if ((entry & 1) != 0) {
        break;
      }
    }
    return nullptr;
  }
  for (uint32_t i = 1; sysv_hash_ != nullptr && i < sysv_hash_[1]; ++i) {
    if (matches(i)) {
      return &symbols_[i];
    }
  }
  return nullptr;
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
  return find_file([](const LoadedFile& file, const void*) { return file.file_name().starts_with("libcuda.so"); }, nullptr);
}

void* next_definition(const char* name) noexcept {
  struct State {
    const char* name;
    bool behind;
  } state{name, false};
  LoadedFile file = find_file(
      [](const LoadedFile& each, const void* context) {
        auto* s = const_cast<State*>(static_cast<const State*>(context));
        if (each.is_ours()) {
          s->behind = true;
          return false;
        }
        return s->behind && each.find(s->name) != nullptr;
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
