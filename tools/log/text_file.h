// Small files that are read at once: options, run.json, baselines, suppressions.
#pragma once

#include <cstddef>
#include <string>

namespace xlog::tools {

// The whole file. False, and a sentence that names it, when it is not a regular file (a FIFO, a device or a folder is answered at
// once, never waited for), cannot be read, or is larger than `most`. What a shell's `<(command)` or /dev/stdin names is read.
bool read_text_file(const std::string& path, std::string& text, std::string& problem, size_t most = size_t{64} << 20);

// "a folder", "a FIFO", "a device", "a socket"; empty for a regular file, and where there is nothing.
std::string special_file(const std::string& path);

}  // namespace xlog::tools
