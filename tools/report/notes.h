// What a reader has to know about the log itself before the figures are believed: one sentence each.
#pragma once

#include <string>
#include <vector>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

std::vector<std::string> notes_of(const Report& report);

}  // namespace xlog::tools
