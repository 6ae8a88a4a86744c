// `xlog run`: starts a program under the library, stays its parent, and ends with the answer.
#pragma once

#include "tools/command/launch_environment.h"

namespace xlog::tools {

// Returns the exit status to end with; a program killed by a signal is followed in that too.
int launch(const LaunchOptions& options);

}  // namespace xlog::tools
