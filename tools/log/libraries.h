// Which library memory is attributed to, by the stack of the call.
#pragma once

#include <map>
#include <string>

#include "tools/log/stacks.h"

namespace xlog::tools {

// The framework's cache that the stack belongs to; else where the program's own code is that made the call: the Python file,
// or the file name of the module. Where the program has no code in the stack, module_of. "(no stack)" without one.
std::string library_of(const Stack* stack, const std::map<std::string, std::string>& environment);
// The framework's cache; else the file name of the innermost module that is neither ours, the driver's nor the CUDA runtime's:
// who asked the driver, whoever made it ask.
std::string module_of(const Stack* stack, const std::map<std::string, std::string>& environment);

}  // namespace xlog::tools
