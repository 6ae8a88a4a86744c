// Whether the process that writes a log is still there.
#pragma once

#include "tools/log/log_set.h"

namespace xlog::tools {

// Its pid lives on this host, is not waited for as a zombie, began before the log did and runs the same program: a pid that
// was given out again began later, and a process that became another program has another log.
bool still_runs(const ProcessLog& log);

}  // namespace xlog::tools
