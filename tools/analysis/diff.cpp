#include "tools/analysis/diff.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "tools/analysis/stable_name.h"
#include "tools/log/json_value.h"
#include "tools/report/format.h"
#include "tools/report/json_parts.h"
#include "tools/report/safe_text.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

using nlohmann::json;

namespace {

uint64_t of(const StackSums& sums, What what) { return what == What::peak ? sums.at_peak : what == What::live ? sums.live : sums.bytes; }

std::string change_text(uint64_t before, uint64_t after) {
  std::string sign = after >= before ? "+" : "-";
  uint64_t distance = after >= before ? after - before : before - after;
  return size_text(before) + " -> " + size_text(after) + " (" + sign + size_text(distance) +
         (before == 0         ? ""
          : distance > before ? ", " + count_text(after / before) + " times as much"
                              : ", " + sign + share_text(distance, before)) +
         ")";
}

}  // namespace

What parse_what(const std::string& name) { return name == "live" ? What::live : name == "total" ? What::total : What::peak; }

RunSums sums_of(const Report& report) {
  RunSums run;
  std::map<std::string, std::set<uint32_t>> places;  // by what is the same in every run
  for (const GpuReport& gpu : report.gpus) {
    if (!gpu.is_gpu()) {
      continue;
    }
    run.peak = std::max(run.peak, gpu.peak);
    run.live += gpu.live;
    run.allocations += gpu.allocations;
    for (const auto& [place, group] : gpu.by(By::stack).entries()) {
      if (group.allocations + group.live + group.at_peak == 0) {
        continue;
      }
      std::string key = stable_name(report.stack(place));
      places[key].insert(place);
      StackSums& sums = run.stacks[key];
      sums.at_peak += group.at_peak;
      sums.live += group.live;
      sums.bytes += group.bytes;
      sums.allocations += group.allocations;
    }
  }
  // Stacks that differ in lines alone, which move from one version of a program to the next, are one here.
  for (const auto& [key, same] : places) {
    size_t more = same.size() - 1;
    run.stacks[key].name = holder_name(report, *same.begin()) + (more != 0 ? " and " + count_text(more) + " more" : "");
  }
  return run;
}

std::string baseline_json(const RunSums& run) {
  json out = {{"format", kFormatVersion}, {"what", "xlog baseline"},        {"peak_bytes", run.peak},
              {"live_bytes", run.live},   {"allocations", run.allocations}, {"stacks", json::array()}};
  for (const auto& [key, sums] : run.stacks) {
    out["stacks"].push_back({{"stack", key},
                             {"name", sums.name},
                             {"at_peak", sums.at_peak},
                             {"live", sums.live},
                             {"bytes", sums.bytes},
                             {"allocations", sums.allocations}});
  }
  return dump(out);
}

bool read_baseline(const std::string& text, RunSums& out, std::string& problem) {
  json in = parse_json(text, problem);
  const json stacks = json_value(in, "stacks");
  if (in.is_discarded()) {
    return false;
  }
  if (json_string(in, "what") != "xlog baseline" || !stacks.is_array()) {
    problem = "no baseline: make one with xlog check --write-baseline FILE";
    return false;
  }
  out.peak = json_number(in, "peak_bytes", 0);
  out.live = json_number(in, "live_bytes", 0);
  out.allocations = json_number(in, "allocations", 0);
  for (const json& each : stacks) {
    out.stacks[json_string(each, "stack")] = {.name = json_string(each, "name"),
                                              .at_peak = json_number(each, "at_peak", 0),
                                              .live = json_number(each, "live", 0),
                                              .bytes = json_number(each, "bytes", 0),
                                              .allocations = json_number(each, "allocations", 0)};
  }
  return true;
}

std::vector<StackChange> differences(const RunSums& before, const RunSums& after, What what) {
  std::vector<StackChange> all;
  auto add = [&](const std::string& name, uint64_t a, uint64_t b) {
    if (a != b) {
      all.push_back({a == 0 ? Change::fresh : b == 0 ? Change::gone : a < b ? Change::grown : Change::shrunk, name, a, b});
    }
  };
  for (const auto& [key, sums] : before.stacks) {
    auto found = after.stacks.find(key);
    add(sums.name, of(sums, what), found != after.stacks.end() ? of(found->second, what) : 0);
  }
  for (const auto& [key, sums] : after.stacks) {
    if (!before.stacks.contains(key)) {
      add(sums.name, 0, of(sums, what));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.distance() > b.distance(); });
  return all;
}

const char* change_name(Change change) {
  constexpr const char* kNames[] = {"new", "gone", "grown", "shrunk"};
  return kNames[static_cast<size_t>(change)];
}

std::string diff_text(const RunSums& before, const RunSums& after, What what, size_t top) {
  constexpr const char* kTitles[] = {"at the peak", "live at the end", "allocated in all"};
  std::string out = "Peak " + change_text(before.peak, after.peak) + "; live at the end " + change_text(before.live, after.live) + "; " +
                    count_text(before.allocations) + " -> " + plural(after.allocations, "allocation") + '\n';
  std::vector<StackChange> all = differences(before, after, what);
  if (all.empty()) {
    return out + "No stack differs in what it held " + kTitles[static_cast<size_t>(what)] + ".\n";
  }
  for (Change change : {Change::fresh, Change::grown, Change::shrunk, Change::gone}) {
    size_t count = static_cast<size_t>(std::count_if(all.begin(), all.end(), [&](const auto& each) { return each.change == change; }));
    if (count == 0) {
      continue;
    }
    out += std::string("\n") + change_name(change) + ", " + kTitles[static_cast<size_t>(what)] + ": " + plural(count, "stack") + '\n';
    size_t told = 0;
    for (const StackChange& each : all) {
      if (each.change == change && told++ < top) {
        out += "  " + change_text(each.before, each.after) + "  " + terminal_line(each.name) + '\n';
      }
    }
    out += count > top ? "  and " + count_text(count - top) + " more (--top)\n" : "";
  }
  return out;
}

std::string diff_json(const RunSums& before, const RunSums& after, What what) {
  json out = {{"format", kFormatVersion},
              {"before", {{"peak_bytes", before.peak}, {"live_bytes", before.live}, {"allocations", before.allocations}}},
              {"after", {{"peak_bytes", after.peak}, {"live_bytes", after.live}, {"allocations", after.allocations}}},
              {"stacks", json::array()}};
  for (const StackChange& each : differences(before, after, what)) {
    out["stacks"].push_back(
        {{"change", change_name(each.change)}, {"name", each.name}, {"before_bytes", each.before}, {"after_bytes", each.after}});
  }
  return dump(out);
}

}  // namespace xlog::tools
