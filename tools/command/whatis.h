// What stood at a device address: for the addresses that memcheck, core dumps and Xid messages give.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/report/report.h"

namespace xlog::tools {

struct WhatisQuery {
  uint64_t address = 0;
  // A moment of the log: `12345` ns since the epoch as in the column `time`, `1.5s`, `20ms`, `300us` after the first row.
  // Empty: the end of the log.
  std::string at;
  bool all_frames = false;
};

// `0x7f00...` or without the prefix, as tools print them.
std::optional<uint64_t> parse_address(const std::string& text);
// Nothing when it cannot be read.
std::optional<uint64_t> parse_moment(const std::string& text, uint64_t first_time);

// For people. `found`: some log knows a block that holds, or held, the address. `problem`: why a log could not be read.
struct WhatisAnswer {
  std::string text;
  bool found = false;
  std::vector<std::string> problems;
};
WhatisAnswer what_is(const WhatisQuery& query, const std::vector<ProcessLog>& logs, bool resolve);

}  // namespace xlog::tools
