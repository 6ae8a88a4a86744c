#include "oracle/report_figures.h"

#include <algorithm>
#include <cmath>

namespace xlog::oracle {

using nlohmann::json;

namespace {

std::string hex(uint64_t n) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%lx", n);
  return text;
}

uint64_t pid_of(const Oracle& right, size_t process) { return right.logs()[process].pid; }

void compare_group(const std::string& what, const json& said, const Group& right, const Oracle& all, Differences& found) {
  double slack = slack_of(all, right.allocations);
  found.same(what + ".allocations", said["allocations"], right.allocations, slack);
  found.same(what + ".bytes", said["bytes"], static_cast<double>(right.bytes));
  found.same(what + ".at_peak", said["at_peak"], static_cast<double>(right.at_peak));
  found.same(what + ".live", said["live"], static_cast<double>(right.live));
  found.same(what + ".live_blocks", said["live_blocks"], right.live_blocks, slack);
  found.same(what + ".freed_only_at_exit", said["freed_only_at_exit"], static_cast<double>(right.freed_only_at_exit));
  found.same(what + ".failures", said["failures"], static_cast<double>(right.failures));
  found.same(what + ".temporary", said["temporary"], right.temporary, slack);
  found.same(what + ".short_lived", said["short_lived"], right.short_lived, slack);
}

// Groups by name on both sides. Groups of nothing need not be said.
void compare_groups(const std::string& what, const std::map<std::string, json>& said, const std::map<std::string, Group>& right,
                    const Oracle& all, Differences& found) {
  for (const auto& [name, group] : right) {
    auto its = said.find(name);
    bool empty = group.allocations == 0 && group.failures == 0 && group.at_peak == 0 && group.live == 0;
    if (its != said.end()) {
      compare_group(what + '[' + name + ']', its->second, group, all, found);
    } else if (!empty) {
      found.note(what + '[' + name + "]: not said");
    }
  }
  for (const auto& [name, group] : said) {
    if (!right.contains(name)) {
      found.note(what + '[' + name + "]: there is none");
    }
  }
}

std::string stream_name(const Oracle& right, size_t process, const Row& made) {
  std::string name = !made.stream ? "no stream" : *made.stream == 0 ? "the default stream" : "stream " + hex(*made.stream);
  return right.logs().size() > 1 ? name + " of " + std::to_string(pid_of(right, process)) : name;
}

std::string thread_name(const Oracle& right, size_t process, const Row& made) {
  std::string name = "thread " + std::to_string(*made.thread) + (made.thread_name.empty() ? "" : " (" + made.thread_name + ')');
  return right.logs().size() > 1 ? name + " of " + std::to_string(pid_of(right, process)) : name;
}

Oracle::Key key_of(const std::string& by, const Oracle& right) {
  return [by, &right](size_t process, const Row& made) -> std::string {
    if (by == "kind") {
      return made.kind.empty() ? "rmm" : made.kind;
    }
    if (by == "tag") {
      return made.tag.empty() ? "no tag" : made.tag;
    }
    if (by == "query") {
      return made.query.empty() ? "no query" : made.query;
    }
    if (by == "stream") {
      return stream_name(right, process, made);
    }
    if (by == "thread") {
      return thread_name(right, process, made);
    }
    if (by == "process") {
      return std::to_string(pid_of(right, process));
    }
    std::string key = right.stack_key(process, made);
    if (by == "library") {
      std::string module = key.substr(0, key.find(' '));
      return module.empty() ? "(no stack)" : module.substr(module.rfind('/') + 1);
    }
    return by == "stack" ? stack_name(key) : "";
  };
}

std::map<std::string, json> by_name(const json& object) {
  std::map<std::string, json> out;
  for (const auto& [name, group] : object.items()) {
    out[name] = group;
  }
  return out;
}

void compare_holders(const std::string& what, const json& said, const std::map<std::string, Group>& right, uint64_t Group::*bytes,
                     double Group::*blocks, const Oracle& all, Differences& found) {
  std::map<std::string, std::pair<double, double>> sums;
  for (const json& each : said) {
    auto& [b, n] = sums[stack_key(each["stack"])];
    b += each["bytes"].get<double>();
    n += each["blocks"].get<double>();
  }
  for (const auto& [stack, group] : right) {
    auto [b, n] = sums[stack];
    found.same(what + '[' + stack_name(stack) + "].bytes", b, static_cast<double>(group.*bytes));
    if (blocks != nullptr) {
      found.same(what + '[' + stack_name(stack) + "].blocks", n, group.*blocks, slack_of(all, group.allocations));
    }
    sums.erase(stack);
  }
  for (const auto& [stack, sum] : sums) {
    found.note(what + '[' + stack_name(stack) + "]: there is none");
  }
}

// "A stack whose live bytes grew in at least three of the four eighths from 3/8 to 7/8 of the run, shrank in none, and by a
// quarter in all."
void compare_growth(const std::string& what, const json& said, const std::string& memory, const Oracle& right, Differences& found) {
  std::map<std::string, std::pair<double, double>> told;
  for (const json& each : said) {
    told[stack_key(each["stack"])] = {each["from_bytes"].get<double>(), each["to_bytes"].get<double>()};
  }
  auto stacks = right.groups(memory, [&](size_t process, const Row& made) { return right.stack_key(process, made); });
  for (const auto& [stack, group] : stacks) {
    uint64_t at[5];
    int grew = 0;
    bool shrank = false;
    for (uint64_t k = 0; k < 5; ++k) {
      at[k] = right.live_of(memory, stack, right.first + (right.last - right.first) * (k + 3) / 8);
      grew += k > 0 && at[k] > at[k - 1] ? 1 : 0;
      shrank = shrank || (k > 0 && at[k] < at[k - 1]);
    }
    bool grows = grew >= 3 && !shrank && at[4] >= at[0] + at[0] / 4;
    if (grows != told.contains(stack)) {
      found.note(what + '[' + stack_name(stack) + (grows ? "]: grows, which is not said" : "]: does not grow"));
    } else if (grows) {
      found.same(what + '[' + stack_name(stack) + "].from", told[stack].first, static_cast<double>(at[0]));
      found.same(what + '[' + stack_name(stack) + "].to", told[stack].second, static_cast<double>(at[4]));
    }
  }
}

void compare_gpu(const json& said, const Oracle& right, Differences& found) {
  std::string memory = memory_of(said);
  Memory own = right.memory(memory);
  std::string what = "gpus[" + memory + ']';
  found.same(what + ".peak_bytes", said["peak_bytes"], static_cast<double>(own.peak));
  if (own.peak != 0) {
    found.same(what + ".peak_time_ns", said["peak_time_ns"].dump(), std::to_string(own.peak_time));
  }
  found.same(what + ".live_bytes", said["live_bytes"], static_cast<double>(own.live));
  found.same(what + ".live_blocks", said["live_blocks"], own.live_blocks, slack_of(right, own.allocations));
  found.same(what + ".allocations", said["allocations"], own.allocations, slack_of(right, own.allocations));
  found.same(what + ".failed", said["failed"], static_cast<double>(own.failed));
  found.same(what + ".refusals", said["refusals"], static_cast<double>(own.refusals));
  found.same(what + ".driver_used.looks", said.contains("driver_used") ? said["driver_used"]["looks"].get<double>() : 0,
             static_cast<double>(own.looks));
  if (own.looks != 0 && said.contains("driver_used")) {
    found.same(what + ".driver_used.most_bytes", said["driver_used"]["most_bytes"], static_cast<double>(own.most_driver_used));
  }
  auto stacks = right.groups(memory, [&](size_t process, const Row& made) { return right.stack_key(process, made); });
  compare_holders(what + ".at_peak", said["at_peak"], stacks, &Group::at_peak, &Group::blocks_at_peak, right, found);
  compare_holders(what + ".never_freed", said["never_freed"], stacks, &Group::live, &Group::live_blocks, right, found);
  compare_holders(what + ".freed_only_at_exit", said["freed_only_at_exit"], stacks, &Group::freed_only_at_exit, nullptr, right, found);
  compare_growth(what + ".growing", said["growing"], memory, right, found);
  for (const auto& [key, by] : {std::pair{"kinds", "kind"}, {"streams", "stream"}, {"tags", "tag"}, {"queries", "query"}}) {
    auto groups = right.groups(memory, key_of(by, right));
    if (said.contains(key)) {
      std::map<std::string, json> own_groups = by_name(said[key]);
      if (!own_groups.contains("no " + std::string(by))) {
        groups.erase("no " + std::string(by));
      }
      compare_groups(what + '.' + key, own_groups, groups, right, found);
    } else {
      groups.erase("no " + std::string(by));
      compare_groups(what + '.' + key, {}, groups, right, found);
    }
  }
  std::map<std::string, json> threads;
  for (const json& each : said["threads"]) {
    std::string name = each["name"].get<std::string>();
    std::string thread = "thread " + each["thread"].dump() + (name.empty() ? "" : " (" + name + ')');
    threads[right.logs().size() > 1 ? thread + " of " + each["process"].dump() : thread] = each;
  }
  compare_groups(what + ".threads", threads, right.groups(memory, key_of("thread", right)), right, found);
}

void compare_processes(const json& said, const Oracle& right, Differences& found) {
  found.same("processes", static_cast<double>(said.size()), static_cast<double>(right.logs().size()));
  for (const json& each : said) {
    for (size_t i = 0; i < right.logs().size(); ++i) {
      if (right.logs()[i].csv != each["log"]) {
        continue;
      }
      Process own = right.process(i);
      std::string what = "processes[" + each["log"].get<std::string>() + ']';
      found.same(what + ".rows", each["rows"], static_cast<double>(own.rows));
      found.same(what + ".allocations", each["allocations"], own.allocations, slack_of(right, own.allocations));
      found.same(what + ".peak_bytes", each["peak_bytes"], static_cast<double>(own.peak));
      found.same(what + ".live_bytes", each["live_bytes"], static_cast<double>(own.live));
      found.same(what + ".refusals", each["refusals"], static_cast<double>(own.refusals));
      if (each["pid"] != 0) {
        found.same(what + ".end_mark", each["end_mark"].get<bool>() ? 1 : 0, own.end_mark ? 1 : 0);
      }
    }
  }
}

void compare_classes(const std::string& what, const json& said, const char* name, const char* count, const std::map<unsigned, Group>& right,
                     const Oracle& all, Differences& found) {
  std::map<unsigned, Group> rest = right;
  for (const json& each : said) {
    unsigned below = each[name].is_null() ? 99 : each[name].get<unsigned>();
    std::string which = what + '[' + std::to_string(below) + ']';
    found.same(which, each[count], rest[below].allocations, slack_of(all, rest[below].allocations));
    found.same(which + ".bytes", each["bytes"], static_cast<double>(rest[below].bytes));
    rest.erase(below);
  }
  for (const auto& [below, group] : rest) {
    found.note(what + '[' + std::to_string(below) + "]: not said");
  }
}

}  // namespace

std::string memory_of(const json& gpu) {
  if (gpu["memory"] != "gpu") {
    return gpu["memory"];
  }
  std::string uuid = gpu.value("uuid", "");
  return uuid.empty() ? "GPU " + gpu["ordinal"].dump() : uuid;
}

std::string stack_key(const json& stack) {
  std::string key;
  for (const json& frame : stack.value("frames", json::array())) {
    uint64_t line = frame.value("line", uint64_t{0});
    key += frame["module"].get<std::string>() + ' ' + frame["build_id"].get<std::string>() + ' ' + hex(frame["offset"]) + ' ' +
           frame.value("function", "") + ' ' + frame.value("file", "") + ':' + (line != 0 ? std::to_string(line) : "") + '\n';
  }
  return key;
}

// "step1  step.cpp:1"
std::string stack_name(const std::string& key) {
  if (key.empty()) {
    return "(no stack)";
  }
  std::string frame = key.substr(0, key.find('\n'));
  size_t place = frame.rfind(' ');
  size_t function = frame.rfind(' ', place - 1) + 1;
  return frame.substr(function, place - function) + " " + frame.substr(place + 1);
}

// A block of a sample stands for a number of blocks that is no whole one.
double slack_of(const Oracle& right, double count) {
  bool sampled = std::any_of(right.logs().begin(), right.logs().end(), [](const Log& each) { return each.sample != 0; });
  return sampled ? 2 + std::sqrt(count) : 0;
}

void compare_report(const json& report, const Oracle& right, Differences& found) {
  if (!report.is_object()) {
    found.note("no JSON");
    return;
  }
  const std::pair<const char*, uint64_t> sums[] = {{"rows", right.rows},
                                                   {"lost_rows", right.lost},
                                                   {"left_out_allocations", right.left_out},
                                                   {"left_out_bytes", right.left_out_bytes},
                                                   {"log_switches", right.switches},
                                                   {"log_off_ns", right.log_off_ns},
                                                   {"ended_unseen", right.ended_unseen},
                                                   {"first_time_ns", right.rows == 0 ? 0 : right.first},
                                                   {"last_time_ns", right.last},
                                                   {"calls", right.calls},
                                                   {"call_ns", right.call_ns},
                                                   {"contradictions", 0},
                                                   {"foreign_rows", 0},
                                                   {"unfinished_rows", 0}};
  for (const auto& [name, sum] : sums) {
    found.same(name, report[name].dump(), std::to_string(sum));
  }
  for (const json& each : report["problems"]) {
    found.note("problems: " + each.dump());
  }
  compare_processes(report["processes"], right, found);
  std::set<std::string> memories = right.memories();
  for (const json& each : report["gpus"]) {
    if (memories.erase(memory_of(each)) == 0) {
      found.note("gpus[" + memory_of(each) + "]: there is none");
    } else {
      compare_gpu(each, right, found);
    }
  }
  for (const std::string& each : memories) {
    found.note("gpus[" + each + "]: not said");
  }
  compare_classes("sizes", report["sizes"], "below_log2", "allocations", right.sizes, right, found);
  compare_classes("lifetimes", report["lifetimes"], "below_log10_ns", "blocks", right.lifetimes, right, found);
}

void compare_split(const json& split, const json& report, const std::string& by, const Oracle& right, Differences& found) {
  if (!split.is_object() || !report.is_object() || split["gpus"].size() != report["gpus"].size()) {
    found.note("--by " + by + ": not the GPUs of the report");
    return;
  }
  for (size_t i = 0; i < split["gpus"].size(); ++i) {
    std::map<std::string, json> said;
    for (const json& each : split["gpus"][i]["groups"]) {
      std::string name = each["name"];
      said[by == "process" ? name.substr(0, name.find(' ')) : by == "device" ? "" : name] = each;
    }
    std::string memory = memory_of(report["gpus"][i]);
    compare_groups("--by " + by + " gpus[" + memory + ']', said, right.groups(memory, key_of(by, right)), right, found);
  }
}

}  // namespace xlog::oracle
