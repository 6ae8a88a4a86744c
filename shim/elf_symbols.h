// Exported symbols of the loaded files, read from their own tables: without dlsym (which replaces the program's pending
// dlerror), without allocation and without I/O. Order is the order of loading, which for preloaded and linked files is
// the search order. Thread-safe.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace xlog {

class LoadedFile {
 public:
  LoadedFile() = default;
  explicit LoadedFile(const dl_phdr_info& info) noexcept;

  // Address of an exported function, or nullptr.
  [[nodiscard]] void* find(const char* name) const noexcept;
  // An exported function's or object's bytes; empty when there is none.
  [[nodiscard]] std::span<const char> find_extent(const char* name) const noexcept;
  [[nodiscard]] bool contains(const void* address) const noexcept;
  [[nodiscard]] std::string_view file_name() const noexcept;  // last component
  [[nodiscard]] bool is_ours() const noexcept;
  explicit operator bool() const noexcept { return symbols_ != nullptr; }

 private:
  const ElfW(Sym) * look_up(const char* name, bool (*wanted)(const ElfW(Sym) & symbol)) const noexcept;

  uintptr_t base_ = 0;
  uintptr_t begin_ = 0;
  uintptr_t end_ = 0;
  const char* name_ = nullptr;
  const ElfW(Sym) * symbols_ = nullptr;
  const char* strings_ = nullptr;
  const uint32_t* gnu_hash_ = nullptr;
  const uint32_t* sysv_hash_ = nullptr;
};

// First file for which `matches` is true.
LoadedFile find_file(bool (*matches)(const LoadedFile&, const void*), const void* context) noexcept;
LoadedFile file_of(const void* address) noexcept;
// The driver: libcuda.so.*
LoadedFile driver_file() noexcept;
// The definition that the search order gives behind ours.
void* next_definition(const char* name) noexcept;
// A definition in any file but ours.
void* other_definition(const char* name) noexcept;

}  // namespace xlog
