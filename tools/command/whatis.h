// What stood at a device address: for the addresses that memcheck, core dumps and Xid messages give.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/format.h"
#include "tools/report/report.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

struct WhatisQuery {
  uint64_t address = 0;
  // A moment of the log (analysis/moment.h). Empty: the end of the log.
  std::string at;
  bool all_frames = false;
};

// `0x7f00...` or without the prefix, as tools print them.
std::optional<uint64_t> parse_address(const std::string& text);
// For people. `found`: some log knows a block that holds, or held, the address. `problem`: why a log could not be read.
struct WhatisAnswer {
  std::string text;
  bool found = false;
  std::vector<std::string> problems;
};
WhatisAnswer what_is(const WhatisQuery& query, const std::vector<ProcessLog>& logs, bool resolve);

}  // namespace xlog::tools
