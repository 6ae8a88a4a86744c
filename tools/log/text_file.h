// A small file that somebody named, read whole.
#pragma once

#include <string>

namespace xlog::tools {

// False, and a few words in `problem`, when it cannot be read, is larger than `most` bytes, or is no regular file: a named pipe
// would be waited for without end. What a shell's `<(command)` or /dev/stdin names is read.
bool read_text_file(const std::string& path, size_t most, std::string& text, std::string& problem);

}  // namespace xlog::tools
