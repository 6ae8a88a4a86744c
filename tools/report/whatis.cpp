#include <algorithm>
#include <nlohmann/json.hpp>

#include "tools/report/format.h"
#include "tools/report/json_parts.h"
#include "tools/report/report.h"
#include "tools/report/safe_text.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

using nlohmann::json;

namespace {

constexpr size_t kPastShown = 4;
constexpr size_t kPastInJson = 16;  // an address of a cache's has had hundreds of thousands of blocks

class InProcess {
 public:
  InProcess(uint64_t address, const AddressInProcess& here, bool all_frames) : address_(address), here_(here), all_frames_(all_frames) {}

  std::string text() const {
    const ProcessLog& log = here_.log;
    std::string out =
        hex_text(address_) + " in " + terminal_line(log.program.empty() ? log.csv : log.program + " (pid " + std::to_string(log.pid) + ")");
    out += here_.now ? ":\n" + describe(*here_.now, true) : here_.past.empty() ? ": in no block of this log\n" : ": free now\n";
    for (size_t i = 0; i < std::min(here_.past.size(), kPastShown); ++i) {
      out += describe(here_.past[here_.past.size() - 1 - i], false);
    }
    if (here_.past.size() > kPastShown) {
      out += "  and in " + plural(here_.past.size() - kPastShown, "block") + " before\n";
    }
    return out + neighbours();
  }

 private:
  std::string since(uint64_t time) const { return time_text(time - here_.first_time) + " after the first row"; }

  static std::string name(const BlockSeen& block) {
    std::string gpu = block.device != kNone ? " on GPU " + std::to_string(block.device) : "";
    return hex_text(block.ptr) + ", " + size_text(block.bytes) + " (" + count_text(block.bytes) + " bytes, " + block.kind + ")" + gpu;
  }

  std::string frames(uint64_t stack) const { return stack_text(here_.stacks.find(stack), here_.log, all_frames_, 3, "      "); }

  std::string describe(const BlockSeen& block, bool live) const {
    uint64_t offset = address_ - block.ptr;
    std::string out = std::string("  ") + (live ? "live" : "was") + ": offset " + count_text(offset) + " (" + hex_text(offset) + ") of " +
                      name(block) + '\n';
    out += std::string("    ") + (block.is_mapping ? "mapped " : "allocated ") + since(block.made) + ", thread " +
           std::to_string(block.thread) + ", by\n" + frames(block.stack);
    if (live) {
      return out;
    }
    if (block.ended == 0) {
      return out + "    freed out of sight\n";
    }
    std::string how = block.end_action == action::deallocate ? "freed" : block.end_action == action::unmap ? "unmapped" : block.end_action;
    return out + "    " + how + ' ' + since(block.ended) + ", " + block.end_api + ", by\n" + frames(block.end_stack);
  }

  std::string neighbours() const {
    std::string out;
    if (here_.below) {
      const BlockSeen& block = *here_.below;
      out += "  below: " + name(block) + ", ends " + size_text(address_ - (block.ptr + block.bytes)) + " before the address\n" +
             frames(block.stack);
    }
    if (here_.above) {
      const BlockSeen& block = *here_.above;
      out += "  above: " + name(block) + ", begins " + size_text(block.ptr - address_) + " after the address\n" + frames(block.stack);
    }
    return out;
  }

  uint64_t address_;
  const AddressInProcess& here_;
  bool all_frames_;
};

json block_json(const AddressInProcess& here, const std::optional<BlockSeen>& block) {
  if (!block) {
    return {};
  }
  json out = {{"ptr", block->ptr},
              {"bytes", block->bytes},
              {"kind", block->kind},
              {"mapping", block->is_mapping},
              {"made_ns", block->made},
              {"thread", block->thread},
              {"stack", stack_json(here.log, here.stacks, block->stack)}};
  if (block->generation != kNone) {
    out["generation"] = block->generation;
  }
  if (block->device != kNone) {
    out["device"] = block->device;
  }
  if (block->ended != 0) {
    out["ended"] = {{"time_ns", block->ended},
                    {"action", block->end_action},
                    {"api", block->end_api},
                    {"stack", stack_json(here.log, here.stacks, block->end_stack)}};
  }
  return out;
}

}  // namespace

std::string whatis_text(const WhatisAnswer& answer, const WhatisQuery& query, bool all_frames) {
  std::string out;
  for (const AddressInProcess& here : answer.processes) {
    // Where no block held it, the neighbours are all there is to tell.
    out += here.found() || !answer.found() ? InProcess(query.address, here, all_frames).text() : "";
  }
  return out;
}

std::string whatis_json(const WhatisAnswer& answer, const WhatisQuery& query) {
  json out = {{"format", kFormatVersion},
              {"address", query.address},
              {"found", answer.found()},
              {"problems", answer.problems},
              {"processes", json::array()}};
  for (const AddressInProcess& here : answer.processes) {
    json past = json::array();
    for (size_t i = here.past.size() - std::min(here.past.size(), kPastInJson); i < here.past.size(); ++i) {
      past.push_back(block_json(here, here.past[i]));
    }
    out["processes"].push_back({{"process", here.log.pid},
                                {"first_time_ns", here.first_time},
                                {"now", block_json(here, here.now)},
                                {"past_count", here.past.size()},
                                {"past", std::move(past)},
                                {"below", block_json(here, here.below)},
                                {"above", block_json(here, here.above)}});
  }
  return dump(out);
}

}  // namespace xlog::tools
