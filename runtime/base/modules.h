// Which loaded file an address lies in. No lock of ours may be held by the caller (loaded_files.h).
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/text.h"

namespace xlog {

inline constexpr size_t kLongestPath = 4096;

struct ModuleAddress {
  explicit ModuleAddress(TextSink& where) noexcept : path(where) {}
  TextSink& path;       // the caller's memory: of kLongestPath to have every path whole
  Text<64> build_id;    // hexadecimal; empty when the file has none
  uint64_t offset = 0;  // address in the file's own numbering (as nm prints it)
  bool known = false;
};

void describe_address(uintptr_t address, ModuleAddress& out) noexcept;

// To be called when a file was unloaded. Where a described address was in it, that address may now mean something else.
void forget_described() noexcept;
// A number that tells call stacks with the same addresses apart: it changes when a file was unloaded that one of these
// addresses lay in, and for no other file, so that a stack which is known stays known. 0 for most processes.
uint32_t generation_of(const uintptr_t* addresses, size_t count) noexcept;

// Whether a file whose name begins with one of `names` is loaded; `out` is then its name without folders.
bool find_loaded(std::span<const std::string_view> names, TextSink& out) noexcept;

}  // namespace xlog
