// Whether elfutils may ask servers for debug information (debuginfod), and for how long.
#pragma once

namespace xlog::tools {

// No server is ever asked unless this was called, which `--debuginfod SECONDS` does: then those of DEBUGINFOD_URLS, for so
// many seconds in all.
void allow_debuginfod(unsigned seconds);
[[nodiscard]] bool is_debuginfod_allowed();
// To be called before anything of elfutils that may look for a file: takes the variables away that make it ask, or sets how
// long it may still take.
void prepare_debuginfod();

}  // namespace xlog::tools
