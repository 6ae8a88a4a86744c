#include "tools/report/oom.h"

#include <pwd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/analysis/analysis.h"
#include "tools/log/json_value.h"
#include "tools/log/libraries.h"
#include "tools/report/format.h"
#include "tools/report/json_parts.h"
#include "tools/report/safe_text.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

constexpr size_t kMostBytes = 1 << 20;  // of a report: the library writes some 20 KiB
constexpr size_t kMostHolders = 50;     // LiveHolders::kMost

uint64_t number(const json& from, const char* name) { return json_number(from, name, kNone); }

std::string user_name(uint64_t uid) {
  const passwd* user = getpwuid(static_cast<uid_t>(uid));
  return user != nullptr ? user->pw_name : std::to_string(uid);
}

std::string bytes_text(uint64_t bytes) { return bytes != kNone ? size_text(bytes) : "an unknown size"; }

class OneReport {
 public:
  OneReport(const ProcessLog& log, const StackFile& stacks, size_t top, bool all_frames)
      : log_(log), stacks_(stacks), top_(top), all_frames_(all_frames) {}

  std::string text(const json& oom) {
    headline(oom);
    frames(number(oom, "stack_id"), "      ");
    holders(oom);
    libraries(oom);
    beside(oom);
    processes(oom);
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += terminal_line(text) + '\n'; }
  void frames(uint64_t stack, const std::string& indent) {
    if (stack != kNone) {
      out_ += terminal_text(stack_text(stacks_.find(stack), log_, all_frames_, 3, indent));
    }
  }

  void headline(const json& oom) {
    bool by_limit = json_string(oom, "refused_by") == "limit";
    bool on_gpu = number(oom, "device") != kNone;
    std::string where =
        on_gpu ? "on GPU " + std::to_string(number(oom, "device")) + " (" + json_string(oom, "gpu_name") + ")" : "of pinned host memory";
    line("Out of memory: " + json_string(oom, "program") + " (pid " + std::to_string(number(oom, "pid")) + ") asked for " +
         bytes_text(number(oom, "requested_bytes")) + ' ' + where + " by " + json_string(oom, "api") + ", refused by " +
         (by_limit ? "the limit of " + bytes_text(number(oom, "limit_bytes")) : "the driver") + "; refusal " +
         std::to_string(number(oom, "refusals_so_far")) + " of the process");
  }

  void holders(const json& oom) {
    uint64_t live = number(oom, "live_bytes");
    std::string driver = number(oom, "driver_free_bytes") != kNone ? "; the driver had " + bytes_text(number(oom, "driver_free_bytes")) +
                                                                         " free of " + bytes_text(number(oom, "driver_total_bytes"))
                                                                   : "";
    line("  in use by this process: " + bytes_text(live) + " in " + plural(number(oom, "live_blocks"), "block") + driver);
    const json list = json_list(oom, "holders");
    for (size_t i = 0; i < std::min(top_, list.size()); ++i) {
      uint64_t bytes = number(list[i], "bytes");
      line("  " + bytes_text(bytes) + "  " + share_text(bytes, live) + "  " + plural(number(list[i], "blocks"), "block"));
      uint64_t stack = number(list[i], "stack_id");
      stack != kNone ? frames(stack, "      ") : line("      (no stack)");
    }
    if (list.size() > top_) {
      line("  and " + plural(list.size() - top_, "place") + " more (--top)");
    }
  }

  void libraries(const json& oom) {
    std::map<std::string, uint64_t> held;
    const json list = json_list(oom, "holders");
    for (const json& each : list) {
      uint64_t stack = number(each, "stack_id");
      held[library_of(stack != kNone ? stacks_.find(stack) : nullptr, log_.environment)] += number(each, "bytes");
    }
    std::vector<std::pair<std::string, uint64_t>> all(held.begin(), held.end());
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::string text;
    for (const auto& [name, bytes] : all) {
      text += (text.empty() ? "  by library: " : ", ") + name + ' ' + size_text(bytes);
    }
    if (!text.empty()) {
      line(text);
    }
  }

  // What no block stands for: the context, modules, a pool's idle memory; and holes between blocks.
  void beside(const json& oom) {
    uint64_t reserved = number(oom, "default_pool_reserved_bytes");
    uint64_t used = number(oom, "default_pool_used_bytes");
    uint64_t live = number(oom, "live_bytes");
    if (reserved != kNone && used != kNone && reserved > used) {
      line("  held by the default pool and in no block: " + size_text(reserved - used));
    }
    const json list = json_list(oom, "processes");
    for (const json& each : list) {
      bool own = json_flag(oom, "pids_are_of_this_namespace") && number(each, "pid") == number(oom, "pid");
      uint64_t bytes = number(each, "bytes");
      if (own && bytes != kNone && bytes > live) {
        line("  of this process beside its blocks (context, modules, what libraries take unasked): " + size_text(bytes - live));
      }
    }
    Report then = analyse({log_}, {.resolve = false, .until = number(oom, "time_ns"), .snapshots = 0});
    for (const GpuReport& gpu : then.gpus) {
      if (gpu.is_gpu() && gpu.ordinal == number(oom, "device") && gpu.holes.known && gpu.holes.count != 0) {
        line("  addresses that blocks have left: " + size_text(gpu.holes.bytes) + " in " + plural(gpu.holes.count, "hole") +
             ", the largest " + size_text(gpu.holes.largest));
      }
    }
  }

  void processes(const json& oom) {
    const json list = json_value(oom, "processes");
    if (!list.is_array()) {
      line(number(oom, "device") != kNone ? "  other processes on the GPU: not known (no NVML)" : "");
      return;
    }
    bool named = json_flag(oom, "pids_are_of_this_namespace");
    size_t others = 0;
    for (const json& each : list) {
      if (named && number(each, "pid") == number(oom, "pid")) {
        continue;
      }
      ++others;
      std::string who = "of a process that cannot be named";
      if (named && each.contains("uid")) {
        who = "pid " + std::to_string(number(each, "pid")) + ", " + user_name(number(each, "uid")) + ", " + json_string(each, "command");
      } else if (named) {
        who = "pid " + std::to_string(number(each, "pid"));
      }
      line("  also on this GPU: " + bytes_text(number(each, "bytes")) + ", " + who);
    }
    if (!named && others != 0) {
      line("  (taken in a container: which processes these are could not be seen; this one is among them)");
    }
    uint64_t unseen = number(oom, "unseen_bytes");
    if (unseen != kNone && unseen != 0) {
      line("  also on this GPU: " + size_text(unseen) + " of processes that could not be seen from where this one ran");
    } else if (others == 0) {
      line("  no other process was on this GPU");
    }
  }

  const ProcessLog& log_;
  const StackFile& stacks_;
  size_t top_;
  bool all_frames_;
  std::string out_;
};

// Each holder has a stack of its own, and the library names so many at most. A file with more was written by somebody else: the
// frames that are put to each would make a report of a thousand times its size.
void keep_known_holders(json& oom) {
  std::set<uint64_t> known;
  json kept = json::array();
  for (json& each : oom["holders"]) {
    if (each.is_object() && kept.size() < kMostHolders && known.insert(number(each, "stack_id")).second) {
      kept.push_back(std::move(each));
    }
  }
  oom["holders"] = std::move(kept);
}

// Names and libraries for the numbers of stacks.
void complete(json& oom, const ProcessLog& log, const StackFile& stacks) {
  for (json& each : oom["holders"]) {
    uint64_t id = number(each, "stack_id");
    const Stack* stack = id != kNone ? stacks.find(id) : nullptr;
    each["library"] = library_of(stack, log.environment);
    each["frames"] = json::array();
    for (const Frame* frame : stack != nullptr ? visible_frames(*stack, true) : std::vector<const Frame*>()) {
      each["frames"].push_back(name_of(*frame) + "  " + where_of(*frame));
    }
  }
}

std::vector<std::string> files_of(const ProcessLog& log) {
  constexpr int kMost = 5;
  std::vector<std::string> files;
  for (int i = 1; i <= kMost; ++i) {
    std::string path = log.stem + ".oom." + std::to_string(i) + ".json";
    std::error_code error;
    if (fs::is_regular_file(path, error)) {
      files.push_back(path);
    }
  }
  return files;
}

}  // namespace

OomReports read_oom_reports(const std::vector<ProcessLog>& logs, size_t top, bool all_frames) {
  OomReports out;
  std::vector<std::tuple<uint64_t, std::string, json>> all;
  for (const ProcessLog& log : logs) {
    std::vector<std::string> files = files_of(log);
    if (files.empty()) {
      continue;
    }
    StackFile stacks;
    stacks.read(log.stem + ".stacks.csv");
    stacks.resolve();
    for (const std::string& path : files) {
      std::string problem;
      json oom = read_json_file(path, kMostBytes, problem);
      if (!json_value(oom, "holders").is_array()) {
        out.problems.push_back(path + ": not a report of this tool" + (problem.empty() ? "" : " (" + problem + ")"));
        continue;
      }
      keep_known_holders(oom);
      std::string text = OneReport(log, stacks, top, all_frames).text(oom);
      complete(oom, log, stacks);
      all.emplace_back(number(oom, "time_ns"), std::move(text), std::move(oom));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return std::get<0>(a) < std::get<0>(b); });
  json list = json::array();
  for (auto& [time, text, oom] : all) {
    out.text += (out.text.empty() ? "" : "\n") + text;
    list.push_back(std::move(oom));
  }
  out.count = all.size();
  out.json = dump({{"format", kFormatVersion}, {"refusals", list}});
  return out;
}

}  // namespace xlog::tools
