// The exported symbols of one loaded file, read from its own tables.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>

#include "runtime/base/plain_calls.h"

namespace xlog {

class ElfTable {
 public:
  ElfTable() = default;
  ElfTable(uintptr_t base, const ElfW(Dyn) * dynamic) noexcept;

  explicit operator bool() const noexcept { return symbols_ != nullptr && strings_ != nullptr; }
  // The definition of a name for which `wanted` is true, or nullptr.
  [[nodiscard]] const ElfW(Sym) * look_up(const char* name, bool (*wanted)(const ElfW(Sym) & symbol)) const noexcept;
  [[nodiscard]] void* find_function(const char* name) const noexcept;
  // Whether the file refers to a symbol of this name that it does not define itself.
  [[nodiscard]] bool imports(const char* name) const noexcept;
  [[nodiscard]] const char* soname() const noexcept { return soname_ != 0 && strings_ != nullptr ? strings_ + soname_ : ""; }

  static bool is_function(const ElfW(Sym) & symbol) noexcept {
    unsigned type = ELF64_ST_TYPE(symbol.st_info);
    return type == STT_FUNC || type == STT_NOTYPE;
  }
  static bool is_any(const ElfW(Sym) & symbol) noexcept { return is_function(symbol) || ELF64_ST_TYPE(symbol.st_info) == STT_OBJECT; }

 private:
  [[nodiscard]] bool matches(uint32_t i, const char* name, bool (*wanted)(const ElfW(Sym) & symbol)) const noexcept {
    const ElfW(Sym)& symbol = symbols_[i];
    return symbol.st_shndx != SHN_UNDEF && symbol.st_value != 0 && wanted(symbol) && same_text(strings_ + symbol.st_name, name);
  }

  uintptr_t base_ = 0;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const uint32_t* gnu_hash_ = nullptr;
  const uint32_t* sysv_hash_ = nullptr;
  uint64_t soname_ = 0;
};

// A function of the C library itself, past every interposer; nullptr when there is none of that name. Needs no call: it
// reads the loader's list of the files that the program was started with, which stay for as long as the process.
void* c_library_function(const char* name) noexcept;

}  // namespace xlog
