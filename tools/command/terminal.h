// The terminal that a command writes to.
#pragma once

#include <string>

#include "tools/report/lines.h"

namespace xlog::tools {

// Its width, from the terminal itself, else from COLUMNS, else 100; and whether it has colours: `colour` is auto, always or never.
Terminal terminal_of(const std::string& colour);

}  // namespace xlog::tools
