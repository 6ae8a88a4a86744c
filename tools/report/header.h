// What a report is about: program, host, GPUs, date, duration, how it ended, and which log.
#pragma once

#include <string>
#include <vector>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

std::vector<std::string> header_of(const Report& report);

}  // namespace xlog::tools
