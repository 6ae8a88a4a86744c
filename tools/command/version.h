// The version of this build, from the file VERSION.
#pragma once

#include <string>

namespace xlog::tools {

// Such as "1.2.3".
std::string version();

}  // namespace xlog::tools
