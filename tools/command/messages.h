// What the commands say on stderr.
#pragma once

#include <string>
#include <string_view>

namespace xlog::tools {

// The text with '?' in place of its control characters, so that it stays one line and cannot steer a terminal.
std::string plain_text(std::string_view text);
// One line on stderr: "xlog: " and the plain text.
void complain(std::string_view text);

}  // namespace xlog::tools
