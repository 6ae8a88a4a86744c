// Which line of its file an instruction of a Python code object belongs to: the tables of CPython 3.9 to 3.15, as its
// Objects/lnotab_notes.txt (to 3.10) and Objects/locations.md (from 3.11) describe them.
#pragma once

#include <cstdint>
#include <span>

namespace xlog {

// `minor` of CPython 3; `first` is co_firstlineno, `at` the instruction's offset in bytes. 0: it has no line.
uint32_t python_line(unsigned minor, std::span<const uint8_t> table, int first, int at) noexcept;

}  // namespace xlog
