// Which loaded file an address lies in. No lock of ours may be held by the caller (loaded_files.h).
#pragma once

#include <cstdint>
#include <span>

#include "runtime/base/text.h"

namespace xlog {

struct ModuleAddress {
  Text<512> path;
  Text<64> build_id;    // hexadecimal; empty when the file has none
  uint64_t offset = 0;  // address in the file's own numbering (as nm prints it)
  bool known = false;
};

void describe_address(uintptr_t address, ModuleAddress& out) noexcept;

// Whether a file whose name begins with one of `names` is loaded; `out` is then its name without folders.
bool find_loaded(std::span<const std::string_view> names, TextSink& out) noexcept;

}  // namespace xlog
