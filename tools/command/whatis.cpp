#include "tools/command/whatis.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdio>
#include <map>

#include "tools/analysis/moment.h"
#include "tools/analysis/taken.h"
#include "tools/log/log_source.h"
#include "tools/report/format.h"

namespace xlog::tools {

namespace {

constexpr size_t kPastShown = 4;

struct BlockSeen {
  uint64_t ptr = 0;
  uint64_t bytes = 0;
  uint64_t generation = 0;
  uint64_t device = kNone;
  uint64_t made = 0;
  uint64_t thread = 0;
  uint64_t stack = kNone;
  std::string kind;
  uint64_t ended = 0;
  uint64_t end_stack = kNone;
  std::string end_action;
  std::string end_api;

  [[nodiscard]] bool holds(uint64_t address) const { return address >= ptr && address - ptr < bytes; }
};

// Handles of arrays and of physical memory are no device addresses: the latter is at one where it is mapped.
bool is_addressed(std::string_view kind) { return has_address(kind) || kind == "import"; }

class Search {
 public:
  Search(const WhatisQuery& query, const ProcessLog& log, bool resolve) : query_(query), log_(log), source_(log) {
    stacks_.read(log.stem + ".stacks.csv");
    if (resolve) {
      stacks_.resolve();
    }
  }

  // Empty, or why the log cannot be read.
  std::string read() {
    if (!source_.file().error().empty()) {
      return source_.file().error();
    }
    if (!source_.reader().good()) {
      return log_.csv + ": " + source_.reader().error();
    }
    source_.advance();
    first_time_ = source_.alive() ? source_.event().time : 0;
    auto moment = query_.at.empty() ? UINT64_MAX : parse_moment(query_.at, first_time_);
    if (!moment) {
      return "\"" + query_.at + "\" is no moment: give nanoseconds since the epoch, or 1.5s, 20ms, 300us after the first row";
    }
    for (; source_.alive(); source_.advance()) {
      if (source_.event().time <= *moment) {
        take(source_.event());
      }
    }
    return {};
  }

  [[nodiscard]] bool found() const { return !past_.empty() || holder() != nullptr; }

  std::string text() const {
    std::string out =
        hex_text(query_.address) + " in " + (log_.program.empty() ? log_.csv : log_.program + " (pid " + std::to_string(log_.pid) + ")");
    const BlockSeen* now = holder();
    out += now != nullptr ? ":\n" + describe(*now, true) : past_.empty() ? ": in no block of this log\n" : ": free now\n";
    for (size_t i = 0; i < std::min(past_.size(), kPastShown); ++i) {
      out += describe(past_[past_.size() - 1 - i], false);
    }
    if (past_.size() > kPastShown) {
      out += "  and in " + plural(past_.size() - kPastShown, "block") + " before\n";
    }
    return out + neighbours();
  }

 private:
  void take(const Event& event) {
    if (event.action == action::log_off || event.action == action::log_on) {
      live_.clear();
      return;
    }
    if (event.result != "ok" || event.ptr == kNone) {
      return;
    }
    if (event.action == action::allocate || event.action == action::live || event.action == action::map) {
      bool addressed = event.action == action::map || is_addressed(event.kind);
      if (addressed && event.bytes != kNone && event.bytes != 0) {
        BlockSeen& block = live_[event.ptr];
        if (block.holds(query_.address)) {  // its end was not seen
          past_.push_back(block);
        }
        block = {.ptr = event.ptr,
                 .bytes = event.bytes,
                 .generation = event.generation,
                 .device = event.device,
                 .made = event.time,
                 .thread = event.thread,
                 .stack = event.stack_id,
                 .kind = event.action == action::map ? "mapped, " + std::string(event.message) : std::string(event.kind),
                 .ended = 0,
                 .end_stack = kNone,
                 .end_action = {},
                 .end_api = {}};
      }
      return;
    }
    // A handle may be as large as an address; only an unmap ends a mapping.
    auto it = live_.find(event.ptr);
    if (it != live_.end() && it->second.kind.starts_with("mapped") != (event.action == action::unmap)) {
      return;
    }
    if (it == live_.end() || it->second.generation != event.generation) {
      return;
    }
    if (it->second.holds(query_.address)) {
      past_.push_back(it->second);
      past_.back().ended = event.time;
      past_.back().end_stack = event.stack_id;
      past_.back().end_action = event.action;
      past_.back().end_api = event.api;
    }
    live_.erase(it);
  }

  [[nodiscard]] const BlockSeen* holder() const {
    auto after = live_.upper_bound(query_.address);
    bool inside = after != live_.begin() && std::prev(after)->second.holds(query_.address);
    return inside ? &std::prev(after)->second : nullptr;
  }

  std::string since(uint64_t time) const { return time_text(time - first_time_) + " after the first row"; }

  std::string name(const BlockSeen& block) const {
    std::string gpu = block.device != kNone ? " on GPU " + std::to_string(block.device) : "";
    return hex_text(block.ptr) + ", " + size_text(block.bytes) + " (" + count_text(block.bytes) + " bytes, " + block.kind + ")" + gpu;
  }

  std::string frames(uint64_t stack) const { return stack_text(stacks_.find(stack), log_, query_.all_frames, 3, "      "); }

  std::string describe(const BlockSeen& block, bool live) const {
    uint64_t offset = query_.address - block.ptr;
    std::string out = std::string("  ") + (live ? "live" : "was") + ": offset " + count_text(offset) + " (" + hex_text(offset) + ") of " +
                      name(block) + '\n';
    out += std::string("    ") + (block.kind.starts_with("mapped") ? "mapped " : "allocated ") + since(block.made) + ", thread " +
           std::to_string(block.thread) + ", by\n" + frames(block.stack);
    if (!live && block.ended == 0) {
      out += "    freed out of sight\n";
    } else if (!live) {
      out += "    " +
             (block.end_action == action::deallocate ? "freed"
              : block.end_action == action::unmap    ? "unmapped"
                                                     : block.end_action) +
             " " + since(block.ended) + ", " + block.end_api + ", by\n";
      out += frames(block.end_stack);
    }
    return out;
  }

  std::string neighbours() const {
    std::string out;
    auto after = live_.upper_bound(query_.address);
    auto before = after;
    if (before != live_.begin() && (--before)->second.holds(query_.address)) {
      before = before != live_.begin() ? std::prev(before) : live_.end();
    } else if (after == live_.begin()) {
      before = live_.end();
    }
    if (before != live_.end()) {
      const BlockSeen& block = before->second;
      out += "  below: " + name(block) + ", ends " + size_text(query_.address - (block.ptr + block.bytes)) + " before the address\n" +
             frames(block.stack);
    }
    if (after != live_.end()) {
      out += "  above: " + name(after->second) + ", begins " + size_text(after->first - query_.address) + " after the address\n" +
             frames(after->second.stack);
    }
    return out;
  }

  const WhatisQuery& query_;
  const ProcessLog& log_;
  LogSource source_;
  StackFile stacks_;
  uint64_t first_time_ = 0;
  std::map<uint64_t, BlockSeen> live_;
  std::vector<BlockSeen> past_;  // that held the address, in the order of their ends
};

}  // namespace

std::optional<uint64_t> parse_address(const std::string& text) {
  std::string digits = text.starts_with("0x") || text.starts_with("0X") ? text.substr(2) : text;
  uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  bool whole = error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
  return whole ? std::optional(value) : std::nullopt;
}

WhatisAnswer what_is(const WhatisQuery& query, const std::vector<ProcessLog>& logs, bool resolve) {
  WhatisAnswer answer;
  std::string elsewhere;
  for (const ProcessLog& log : logs) {
    Search search(query, log, resolve);
    std::string problem = search.read();
    if (!problem.empty()) {
      answer.problems.push_back(problem);
    } else {
      (search.found() ? answer.text : elsewhere) += search.text();
      answer.found = answer.found || search.found();
    }
  }
  // Where no block held it, the neighbours are all there is to tell.
  answer.text += answer.found ? "" : elsewhere;
  return answer;
}

}  // namespace xlog::tools
