// `xlog report --by`: one table.
#include <algorithm>
#include <map>

#include "tools/analysis/group_sum.h"
#include "tools/log/libraries.h"
#include "tools/report/format.h"
#include "tools/report/json_parts.h"
#include "tools/report/report.h"
#include "tools/report/safe_text.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

namespace {

constexpr const char* kSplits[] = {"stack", "thread", "stream", "kind", "tag", "query", "process", "device", "library", "module"};

std::vector<std::pair<std::string, Group>> groups_of(const Report& report, const GpuReport& gpu, Split split) {
  std::map<std::string, Group> named;
  By by = split == Split::device ? By::process : split >= Split::library ? By::stack : static_cast<By>(split);
  for (const auto& [number, group] : gpu.by(by).entries()) {
    if (!has_figures(group)) {
      continue;
    }
    std::string name = split == Split::device    ? gpu_title(gpu)
                       : split == Split::library ? library_of(report.stack(number), report.log_of(number).environment)
                       : split == Split::module  ? module_of(report.stack(number), report.log_of(number).environment)
                                                 : label(report, by, number);
    add_group(named[name], group);
  }
  std::vector<std::pair<std::string, Group>> all(named.begin(), named.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second.at_peak > b.second.at_peak; });
  return all;
}

std::string right(const std::string& text, size_t width) { return std::string(text.size() < width ? width - text.size() : 0, ' ') + text; }

}  // namespace

std::optional<Split> parse_split(const std::string& name) {
  for (size_t i = 0; i < std::size(kSplits); ++i) {
    if (name == kSplits[i]) {
      return static_cast<Split>(i);
    }
  }
  return std::nullopt;
}

std::string split_text(const Report& report, const ReportStyle&, Split split) {
  std::string out;
  for (const GpuReport& gpu : report.gpus) {
    out += terminal_line(gpu_title(gpu)) + ", by " + kSplits[static_cast<size_t>(split)] + "\n" + right("at the peak", 13) +
           right("at the end", 13) + right("in all", 13) + right("allocations", 14) + right("refused", 10) + '\n';
    for (const auto& [name, group] : groups_of(report, gpu, split)) {
      out += right(size_text(group.at_peak), 13) + right(size_text(group.live), 13) + right(size_text(group.bytes), 13) +
             right(count_text(group.allocations), 14) + right(count_text(group.failures), 10) + "  " + terminal_line(name) + '\n';
    }
  }
  return out;
}

std::string split_json(const Report& report, Split split) {
  nlohmann::json out = {{"format", kFormatVersion}, {"by", kSplits[static_cast<size_t>(split)]}, {"gpus", nlohmann::json::array()}};
  for (const GpuReport& gpu : report.gpus) {
    nlohmann::json groups = nlohmann::json::array();
    for (const auto& [name, group] : groups_of(report, gpu, split)) {
      nlohmann::json each = group_json(group);
      each["name"] = name;
      groups.push_back(std::move(each));
    }
    out["gpus"].push_back({{"memory", gpu.is_gpu() ? "gpu" : gpu.key},
                           {"ordinal", gpu.is_gpu() ? nlohmann::json(gpu.ordinal) : nlohmann::json()},
                           {"groups", groups}});
  }
  return dump(out);
}

}  // namespace xlog::tools
