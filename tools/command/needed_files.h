// What an ELF program names as the files that it needs.
#pragma once

#include <string>
#include <vector>

namespace xlog::tools {

// The file that a command runs: by its path, or in the folders of PATH. "" when there is none.
std::string find_program(const std::string& name);

// The names that the loader is asked for (DT_NEEDED), in order. Empty for a file that is no dynamic 64-bit ELF program.
std::vector<std::string> needed_files(const std::string& path);

// Whether the file is a sanitizer's runtime that has to be the first of all (AddressSanitizer refuses to run otherwise).
bool must_be_first(const std::string& file);

// The runtime that the command's program needs and that must be named before the library in LD_PRELOAD; "" when none.
std::string sanitizer_of(const std::string& command);

}  // namespace xlog::tools
