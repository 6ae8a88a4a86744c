// The exported forms, read back as their readers do.
#include <algorithm>
#include <sstream>

#include "oracle/other_figures.h"
#include "oracle/report_figures.h"

namespace xlog::oracle {

using nlohmann::json;

namespace {

// "main;step1", the outermost first.
std::string folded_stack(const std::string& key) {
  std::vector<std::string> functions;
  std::istringstream lines(key);
  for (std::string line; std::getline(lines, line);) {
    std::string head = line.substr(0, line.rfind(' '));
    functions.push_back(head.substr(head.rfind(' ') + 1));
  }
  std::string out;
  for (size_t i = functions.size(); i-- > 0;) {
    out += functions[i] + (i != 0 ? ";" : "");
  }
  return out;
}

bool has_address(const Row& made) { return made.kind != "vmm" && made.kind != "array" && made.kind != "graph"; }

}  // namespace

void compare_folded(const std::string& folder, const Oracle& right, Differences& found) {
  const std::pair<const char*, uint64_t Group::*> kinds[] = {{"peak", &Group::at_peak}, {"live", &Group::live}, {"total", &Group::bytes}};
  for (const auto& [what, member] : kinds) {
    uint64_t all = 0;
    std::map<std::string, uint64_t> said;
    std::istringstream lines(ask({"export", "folded", "--what", what, folder}).out);
    for (std::string line; std::getline(lines, line);) {
      size_t space = line.rfind(' ');
      std::string name = line.substr(0, space);
      // In front of the stack stands the memory, where there are several.
      size_t main = name.find("main;");
      said[main != name.npos ? name.substr(main) : ""] += std::stoull(line.substr(space + 1));
    }
    std::map<std::string, uint64_t> sums;
    for (const std::string& memory : right.memories()) {
      for (const auto& [key, group] :
           right.groups(memory, [&](size_t process, const Row&made) { return right.stack_key(process, made); })) {
        sums[folded_stack(key)] += group.*member;
        all += group.*member;
      }
    }
    for (const auto& [name, sum] : sums) {
      found.same(std::string("folded ") + what + '[' + name + ']', static_cast<double>(said[name]), static_cast<double>(sum));
    }
  }
}

// The counter of each process and GPU, over time.
void compare_trace(const std::string& folder, const Oracle& right, Differences& found) {
  json trace = ask({"export", "trace", folder}).json();
  if (!trace.is_object()) {
    found.note("trace: no JSON");
    return;
  }
  struct Counter {
    uint64_t most = 0;
    uint64_t last = 0;
  };
  std::map<std::pair<uint64_t, std::string>, Counter> said;
  uint64_t refused = 0;
  for (const json& event : trace["traceEvents"]) {
    refused += event["ph"] == "i" ? 1 : 0;
    if (event["ph"] == "C") {
      Counter& own = said[{event["pid"], event["name"]}];
      own.last = event["args"]["live bytes"];
      own.most = std::max(own.most, own.last);
    }
  }
  uint64_t right_refused = 0;
  for (size_t process = 0; process < right.logs().size(); ++process) {
    right_refused += right.process(process).refusals;
    std::map<uint64_t, std::vector<std::pair<Moment, int64_t>>> changes;  // by ordinal
    std::map<uint64_t, uint64_t> left;
    for (const Block& each : right.blocks()) {
      if (each.process == process && each.memory != "host" && each.memory != "import") {
        auto& own = changes[*each.made->device];
        own.emplace_back(each.from, static_cast<int64_t>(*each.made->bytes));
        own.emplace_back(each.until, -static_cast<int64_t>(*each.made->bytes));
        left[*each.made->device] += right.outlives_the_rows(each) ? *each.made->bytes : 0;
      }
    }
    for (auto& [device, own] : changes) {
      std::sort(own.begin(), own.end());
      int64_t live = 0;
      int64_t most = 0;
      for (size_t i = 0; i < own.size(); ++i) {
        live += own[i].second;
        most = i + 1 == own.size() || own[i + 1].first != own[i].first ? std::max(most, live) : most;
      }
      Counter counter = said[{right.logs()[process].pid, "GPU " + std::to_string(device)}];
      std::string what = "trace of " + std::to_string(right.logs()[process].pid) + " GPU " + std::to_string(device);
      found.same(what + ", at most", static_cast<double>(counter.most), static_cast<double>(most));
      found.same(what + ", at the end", static_cast<double>(counter.last), static_cast<double>(left[device]));
    }
  }
  found.same("trace, refusals", static_cast<double>(refused), static_cast<double>(right_refused));
}

// Played again, as RMM's REPLAY_BENCH does: every free finds its block, and the peak is that of the blocks that have addresses.
void compare_rmm(const std::string& folder, const Oracle& right, Differences& found) {
  auto lines = read_csv(ask({"export", "rmm", "--device", "0", folder}).out);
  std::map<std::string, uint64_t> live;
  uint64_t now = 0;
  uint64_t most = 0;
  double made = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    const auto& f = lines[i];
    if (f[2] == "allocate") {
      ++made;
      found.same("rmm, allocated where a block is", live.contains(f[3]) ? 1 : 0, 0);
      now += live[f[3]] = std::stoull(f[4]);
      most = std::max(most, now);
    } else if (f[2] == "free") {
      found.same("rmm, a free that finds its block", live.contains(f[3]) && live[f[3]] == std::stoull(f[4]) ? 1 : 0, 1);
      now -= live[f[3]];
      live.erase(f[3]);
    }
  }
  std::vector<std::pair<Moment, int64_t>> changes;
  double right_made = 0;
  uint64_t left = 0;
  for (const Block& each : right.blocks()) {
    if (each.made->device == uint64_t{0} && has_address(*each.made)) {
      ++right_made;
      left += right.outlives_the_rows(each) ? *each.made->bytes : 0;
      changes.emplace_back(each.from, static_cast<int64_t>(*each.made->bytes));
      changes.emplace_back(each.until, -static_cast<int64_t>(*each.made->bytes));
    }
  }
  std::sort(changes.begin(), changes.end());
  int64_t sum = 0;
  int64_t right_most = 0;
  for (size_t i = 0; i < changes.size(); ++i) {
    sum += changes[i].second;
    right_most = i + 1 == changes.size() || changes[i + 1].first != changes[i].first ? std::max(right_most, sum) : right_most;
  }
  found.same("rmm, allocations", made, right_made);
  found.same("rmm, at most", static_cast<double>(most), static_cast<double>(right_most));
  found.same("rmm, at the end", static_cast<double>(now), static_cast<double>(left));
}

}  // namespace xlog::oracle
