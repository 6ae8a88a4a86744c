#include "tools/command/messages.h"

#include <iostream>

#include "tools/report/safe_text.h"

namespace xlog::tools {

void complain(std::string_view sentence) { std::cerr << "xlog: " + terminal_line(sentence) + '\n' << std::flush; }

}  // namespace xlog::tools
