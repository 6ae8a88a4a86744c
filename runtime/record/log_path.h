// XLOG_LOG's text -> the absolute paths of one process's files. Pure: everything it needs is given.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/text.h"

namespace xlog {

struct PathFacts {
  uint64_t pid = 0;
  uint64_t start_time = 0;  // seconds since the epoch
  std::string_view host;
  std::string_view program;  // last component, for a directory's file names
  std::string_view folder;   // current directory at the first listed call
  const char* (*variable)(const char* name) = nullptr;
};

// Expands %p %h %r %t %q{VAR} and %%; adds the pid when %p is absent; makes the path absolute; a trailing slash means
// DIR/PROGRAM.PID.csv. Values that a placeholder brings in cannot add a '/'. The result ends without `.csv`: the
// caller appends `.csv`, `.stacks.csv`, `.run.json`, and `.1`, `.2` before those when a name exists.
// False when it does not fit or a placeholder is unknown.
bool expand_log_path(std::string_view pattern, const PathFacts& facts, TextSink& out) noexcept;

}  // namespace xlog
