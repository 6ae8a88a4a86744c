// Long answers on a terminal go through a pager, as git's do.
#pragma once

#include <string_view>

namespace xlog::tools {

// Shows the text by XLOG_PAGER, else PAGER, else less, where standard output is a terminal that has fewer lines than the text. False
// where that is not so, or where no pager could be started: then nothing was written. An empty pager, or "cat", stands for none.
bool shown_by_pager(std::string_view text);

}  // namespace xlog::tools
