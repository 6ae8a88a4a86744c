// What stood at a device address: for the addresses that memcheck, core dumps and Xid messages give.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/record/event.h"
#include "tools/log/log_set.h"
#include "tools/log/stacks.h"

namespace xlog::tools {

struct WhatisQuery {
  uint64_t address = 0;
  // A moment of the log (analysis/moment.h). Empty: the end of the log.
  std::string at;
};

// `0x7f00...` or without the prefix, as tools print them.
std::optional<uint64_t> parse_address(const std::string& text);

// A block of memory, or a mapping of some.
struct BlockSeen {
  [[nodiscard]] bool holds(uint64_t address) const { return address >= ptr && address - ptr < bytes; }

  uint64_t ptr = 0;
  uint64_t bytes = 0;
  uint64_t generation = 0;
  uint64_t device = kNone;
  uint64_t made = 0;
  uint64_t thread = 0;
  uint64_t stack = kNone;
  std::string kind;
  bool is_mapping = false;
  uint64_t ended = 0;  // 0: lives, or its end was not seen
  uint64_t end_stack = kNone;
  std::string end_action;
  std::string end_api;
};

struct AddressInProcess {
  // Some block holds the address, or did.
  [[nodiscard]] bool found() const { return now.has_value() || !past.empty(); }

  ProcessLog log;
  StackFile stacks;
  uint64_t first_time = 0;
  bool is_before = false;  // the moment that was asked for is before the first row
  bool is_after = false;   // or after the last
  std::optional<BlockSeen> now;
  std::vector<BlockSeen> past;     // in the order of their ends
  std::optional<BlockSeen> below;  // the nearest that live beside the address
  std::optional<BlockSeen> above;
};

struct WhatisAnswer {
  [[nodiscard]] bool found() const;

  std::vector<AddressInProcess> processes;
  std::vector<std::string> problems;  // why a log could not be read
};
WhatisAnswer what_is(const WhatisQuery& query, const std::vector<ProcessLog>& logs, bool resolve);

}  // namespace xlog::tools
