// Exported symbols of the loaded files, read from their own tables: without dlsym (which replaces the program's pending
// dlerror), without allocation and without I/O. Order is the order of loading, which for preloaded and linked files is
// the search order. Thread-safe.
#pragma once

#include <elf.h>
#include <link.h>

#include <cstdint>
#include <span>

#include "runtime/base/elf_table.h"

namespace xlog {

class LoadedFile {
 public:
  LoadedFile() = default;
  explicit LoadedFile(const dl_phdr_info& info) noexcept;

  // Address of an exported function, or nullptr.
  [[nodiscard]] void* find(const char* name) const noexcept;
  // An exported function's or object's bytes; empty when there is none.
  [[nodiscard]] std::span<const char> find_extent(const char* name) const noexcept;
  [[nodiscard]] bool imports(const char* name) const noexcept { return table_.imports(name); }
  [[nodiscard]] uintptr_t begin() const noexcept { return begin_; }
  [[nodiscard]] bool contains(const void* address) const noexcept;
  // By the name of the file or by the name that it gives itself (DT_SONAME). The driver is libcuda.so.*.
  [[nodiscard]] bool is_named(const char* prefix) const noexcept {
    return begins_with(last_component(info_.dlpi_name), prefix) || begins_with(table_.soname(), prefix);
  }
  [[nodiscard]] bool is_driver() const noexcept { return is_named("libcuda.so"); }
  [[nodiscard]] bool is_nvml() const noexcept { return is_named("libnvidia-ml.so"); }
  [[nodiscard]] const dl_phdr_info& info() const noexcept { return info_; }
  [[nodiscard]] bool is_ours() const noexcept;
  explicit operator bool() const noexcept { return static_cast<bool>(table_); }

 private:
  dl_phdr_info info_{};  // what it points to is there for as long as the file
  uintptr_t begin_ = 0;
  uintptr_t end_ = 0;
  ElfTable table_;
};

// First file for which `matches` is true.
LoadedFile find_file(bool (*matches)(const LoadedFile&, const void*), const void* context) noexcept;
LoadedFile file_of(const void* address) noexcept;
// The driver: libcuda.so.*
LoadedFile driver_file() noexcept;
// Whether the file that begins there is one of those that the program was started with.
bool started_with(uintptr_t begin) noexcept;
// The definition that the search order gives behind ours: that of a file which the program was started with, such as
// another interposer, else the driver's or its management library's. A library that the program opened later and that
// happens to export the name is reached through its own handle alone.
void* next_definition(const char* name) noexcept;
// A definition in any file but ours.
void* other_definition(const char* name) noexcept;

}  // namespace xlog
