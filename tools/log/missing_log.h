// Why a name that was given as a log has none.
#pragma once

#include <string>

namespace xlog::tools {

// One sentence, which tells apart: nothing of the name, no permission, something that is no file, an empty folder, a folder of
// runs, and a folder of other files.
std::string why_no_log(const std::string& name);

}  // namespace xlog::tools
