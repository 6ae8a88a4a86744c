#include "runtime/base/elf_table.h"

// The loader's list (link.h). Weak, so that the library needs no other file than libc.
#pragma weak _r_debug

namespace xlog {

namespace {

uint32_t gnu_hash_of(const char* name) noexcept {
  uint32_t h = 5381;
  for (; *name != '\0'; ++name) {
    h = h * 33 + static_cast<unsigned char>(*name);
  }
  return h;
}

}  // namespace

ElfTable::ElfTable(uintptr_t base, const ElfW(Dyn) * dynamic) noexcept : base_(base) {
  // The loader relocates these entries in place, but not in every file (the vdso's it leaves).
  auto at = [base](const ElfW(Dyn) & entry) { return entry.d_un.d_ptr < base ? entry.d_un.d_ptr + base : entry.d_un.d_ptr; };
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
      case DT_SONAME:
        soname_ = dynamic->d_un.d_val;
        break;
      default:
        break;
    }
  }
}

void* ElfTable::find_function(const char* name) const noexcept {
  const ElfW(Sym)* symbol = look_up(name, is_function);
  return symbol != nullptr ? reinterpret_cast<void*>(base_ + symbol->st_value) : nullptr;
}

const ElfW(Sym) * ElfTable::look_up(const char* name, bool (*wanted)(const ElfW(Sym) & symbol)) const noexcept {
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
      if ((entry | 1) == (hash | 1) && matches(i, name, wanted)) {
        return &symbols_[i];
      }
      if ((entry & 1) != 0) {
        break;
      }
    }
    return nullptr;
  }
  for (uint32_t i = 1; sysv_hash_ != nullptr && i < sysv_hash_[1]; ++i) {
    if (matches(i, name, wanted)) {
      return &symbols_[i];
    }
  }
  return nullptr;
}

bool ElfTable::imports(const char* name) const noexcept {
  // With the GNU table, what is imported comes before what is defined; the other counts all symbols.
  uint32_t count = gnu_hash_ != nullptr ? gnu_hash_[1] : sysv_hash_ != nullptr ? sysv_hash_[1] : 0;
  for (uint32_t i = 1; *this && i < count; ++i) {
    if (symbols_[i].st_shndx == SHN_UNDEF && same_text(strings_ + symbols_[i].st_name, name)) {
      return true;
    }
  }
  return false;
}

void* c_library_function(const char* name) noexcept {
  for (const link_map* file = &_r_debug != nullptr ? _r_debug.r_map : nullptr; file != nullptr; file = file->l_next) {
    if (same_text(last_component(file->l_name), "libc.so.6")) {
      return ElfTable(file->l_addr, file->l_ld).find_function(name);
    }
  }
  return nullptr;
}

}  // namespace xlog
