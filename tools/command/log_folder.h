// Where the log of `xlog run` goes.
#pragma once

#include <string>

namespace xlog::tools {

struct LogFolder {
  std::string path;    // absolute; empty when none could be made
  bool fresh = false;  // made by us: it holds nothing else
  std::string note;    // a sentence where it is not the one that was wanted, or why there is none
};

// A folder of this run's own, `xlog.PROGRAM.TIME` in the current folder. Where that cannot be made: in $XDG_STATE_HOME/xlog, else
// ~/.local/state/xlog, else in /tmp. Mode 0700; nothing that another user may have planted is used.
LogFolder make_log_folder(const std::string& program);
// The folder that the user named, which may exist, with the folders above it; else as above.
LogFolder use_log_folder(const std::string& wanted, const std::string& program);

// `text` as a pattern of XLOG_LOG that stands for itself: a % is doubled.
std::string literal_pattern(const std::string& text);

}  // namespace xlog::tools
