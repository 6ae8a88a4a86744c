// `xlog log on|off PID`: switches the log of a running process through its control page (runtime/record/log_switch.h).
#pragma once

#include <string>

namespace xlog::tools {

// What became of it, in one line. False: the process cannot be reached.
bool switch_log(unsigned pid, bool on, std::string& said);

}  // namespace xlog::tools
