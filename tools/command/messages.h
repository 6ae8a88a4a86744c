// What the commands say on stderr.
#pragma once

#include <string_view>

namespace xlog::tools {

// One line on stderr: "xlog: " and the sentence, safe for a terminal.
void complain(std::string_view sentence);

}  // namespace xlog::tools
