// Which library asked for memory, by the stack of the call.
#pragma once

#include <map>
#include <string>

#include "tools/log/stacks.h"

namespace xlog::tools {

// The framework's cache that the stack belongs to; else the file name of the innermost frame that is neither ours, the
// driver's nor the CUDA runtime's. "(no stack)" without one.
std::string library_of(const Stack* stack, const std::map<std::string, std::string>& environment);

}  // namespace xlog::tools
