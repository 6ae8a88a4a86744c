// The folder of this user's caches, and files in it: private, and never through a link that somebody else made.
#pragma once

#include <optional>
#include <string>

namespace xlog::tools {

// A descriptor of $XDG_CACHE_HOME/xlog, or ~/.cache/xlog, made if it is not there; -1 when there is none, when it is another
// user's, or when others may write to it.
int open_cache_folder();
// The file `name` there, of `limit` bytes at most, when it is this user's own.
std::optional<std::string> read_cache_file(int folder, const std::string& name, size_t limit);
// Whole or not at all, whoever reads meanwhile.
void write_cache_file(int folder, const std::string& name, const std::string& text);
// Takes the oldest files away until what is left is `limit` bytes.
void trim_cache(int folder, size_t limit);

}  // namespace xlog::tools
