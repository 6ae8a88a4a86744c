// A stack's name that is the same in another run, after a rebuild, and wherever libraries were loaded.
#pragma once

#include <string>

#include "tools/log/stacks.h"

namespace xlog::tools {

// The functions by name, with the file name of their module; a frame without a name by module, build-id and offset. Lines
// are left out: they move with every edit. A compiler's clones of a function are the function.
std::string stable_name(const Stack* stack);

}  // namespace xlog::tools
