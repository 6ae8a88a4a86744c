#include "tools/analysis/whatis.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>

#include "tools/analysis/moment.h"
#include "tools/analysis/taken.h"
#include "tools/log/log_source.h"

namespace xlog::tools {

namespace {

// Handles of arrays and of physical memory are no device addresses: the latter is at one where it is mapped.
bool is_addressed(std::string_view kind) { return has_address(kind) || kind == "import"; }

class Search {
 public:
  Search(uint64_t address, AddressInProcess& out) : address_(address), out_(out) {}

  void take(const Event& event) {
    if (event.action == action::log_on) {
      come_on();
    } else if (event.result != "ok" || event.ptr == kNone) {
      return;
    } else if (event.action == action::allocate || event.action == action::live || event.action == action::map) {
      begin(event);
    } else {
      end(event);
    }
  }

  // What lives at the address and beside it.
  void finish() {
    auto after = live_.upper_bound(address_);
    if (after != live_.end()) {
      out_.above = after->second;
    }
    if (after != live_.begin()) {
      auto before = std::prev(after);
      if (before->second.holds(address_)) {
        out_.now = before->second;
        before = before != live_.begin() ? std::prev(before) : live_.end();
      }
      if (before != live_.end()) {
        out_.below = before->second;
      }
    }
  }

 private:
  // What is live is told anew; what is not told was freed while the log was off.
  void come_on() {
    before_off_.clear();
    for (const auto& [ptr, block] : live_) {
      if (block.holds(address_)) {
        out_.past.push_back(block);
      }
    }
    before_off_.swap(live_);
  }

  // It was live when the log went off, and is as it was.
  bool goes_on(const Event& event) {
    auto known = before_off_.find(event.ptr);
    if (event.action != action::live || known == before_off_.end() || known->second.generation != event.generation) {
      return false;
    }
    if (known->second.holds(address_)) {
      std::erase_if(out_.past,
                    [&](const BlockSeen& each) { return each.ended == 0 && each.ptr == event.ptr && each.generation == event.generation; });
    }
    live_[event.ptr] = known->second;
    before_off_.erase(known);
    return true;
  }

  void begin(const Event& event) {
    bool is_mapping = event.action == action::map;
    if ((!is_mapping && !is_addressed(event.kind)) || event.bytes == kNone || event.bytes == 0) {
      return;
    }
    auto there = live_.find(event.ptr);
    if (there != live_.end() && event.action == action::live && there->second.generation == event.generation) {
      return;  // made while the log came on: it has both rows
    }
    if (goes_on(event)) {
      return;
    }
    BlockSeen& block = live_[event.ptr];
    if (block.holds(address_)) {  // its end was not seen
      out_.past.push_back(block);
    }
    block = {.ptr = event.ptr,
             .bytes = event.bytes,
             .generation = event.generation,
             .device = event.device,
             .made = event.time,
             .thread = event.thread,
             .stack = event.stack_id,
             .kind = is_mapping ? "mapped, " + std::string(event.message) : std::string(event.kind),
             .is_mapping = is_mapping,
             .ended = 0,
             .end_stack = kNone,
             .end_action = {},
             .end_api = {}};
  }

  void end(const Event& event) {
    auto it = live_.find(event.ptr);
    // A handle may be as large as an address; only an unmap ends a mapping.
    if (it == live_.end() || it->second.is_mapping != (event.action == action::unmap) || it->second.generation != event.generation) {
      return;
    }
    if (it->second.holds(address_)) {
      out_.past.push_back(it->second);
      BlockSeen& past = out_.past.back();
      past.ended = event.time;
      past.end_stack = event.stack_id;
      past.end_action = event.action;
      past.end_api = event.api;
    }
    live_.erase(it);
  }

  uint64_t address_;
  AddressInProcess& out_;
  std::map<uint64_t, BlockSeen> live_;
  std::map<uint64_t, BlockSeen> before_off_;  // what was live when the log went off, once it is on
};

// Empty, or why the log cannot be read.
std::string search(const WhatisQuery& query, const ProcessLog& log, AddressInProcess& out) {
  LogSource source(log);
  if (!source.file().error().empty()) {
    return source.file().error();
  }
  if (!source.reader().good()) {
    return log.csv + ": " + source.reader().error();
  }
  source.advance();
  out.first_time = source.alive() ? source.event().time : 0;
  auto moment = query.at.empty() ? UINT64_MAX : parse_moment(query.at, out.first_time);
  if (!moment) {
    return "\"" + query.at + "\" is no moment: give nanoseconds since the epoch, or 1.5s, 20ms, 300us after the first row";
  }
  Search blocks(query.address, out);
  out.is_before = *moment < out.first_time;
  out.is_after = !query.at.empty();
  for (; source.alive(); source.advance()) {
    out.is_after = out.is_after && source.event().time < *moment;
    if (source.event().time <= *moment) {
      blocks.take(source.event());
    }
  }
  blocks.finish();
  return {};
}

}  // namespace

std::optional<uint64_t> parse_address(const std::string& text) {
  std::string digits = text.starts_with("0x") || text.starts_with("0X") ? text.substr(2) : text;
  uint64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  bool whole = error == std::errc() && end == digits.data() + digits.size() && !digits.empty();
  return whole ? std::optional(value) : std::nullopt;
}

bool WhatisAnswer::found() const {
  return std::any_of(processes.begin(), processes.end(), [](const AddressInProcess& each) { return each.found(); });
}

WhatisAnswer what_is(const WhatisQuery& query, const std::vector<ProcessLog>& logs, bool resolve) {
  WhatisAnswer answer;
  auto frames = std::make_shared<FrameTable>();
  for (const ProcessLog& log : logs) {
    AddressInProcess here;
    std::string problem = search(query, log, here);
    if (!problem.empty()) {
      answer.problems.push_back(problem);
      continue;
    }
    here.log = log;
    here.stacks = StackFile(frames);
    here.stacks.read(log.stem + ".stacks.csv");
    answer.processes.push_back(std::move(here));
  }
  if (resolve) {
    frames->resolve();
  }
  return answer;
}

}  // namespace xlog::tools
