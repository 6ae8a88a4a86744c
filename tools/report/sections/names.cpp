// What memory is told apart by, beside stacks: tags, queries, kinds, streams, threads and processes.
#include <algorithm>
#include <cmath>

#include "tools/report/format.h"
#include "tools/report/sections/section_maker.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

namespace {

// Rows for the groups of one dimension; blocks of which the program says nothing are left out where it names others.
void add_groups(const SectionMaker& maker, Section& section, const std::string& what, By by, const GpuReport& gpu) {
  std::vector<Groups::Entry> order;
  bool is_named = by == By::tag || by == By::query;
  for (const Groups::Entry& each : gpu.by(by).entries()) {
    if ((!is_named || each.number != 0) && each.group.allocations + each.group.live + each.group.at_peak != 0) {
      order.push_back(each);
    }
  }
  if (!is_named && order.size() < 2) {
    return;
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.group.at_peak > b.group.at_peak; });
  size_t shown = std::min(order.size(), 2 * maker.style.top);
  for (size_t i = 0; i < shown; ++i) {
    const auto& [number, group] = order[i];
    section.rows.push_back({.cells = {{0, what + label(maker.report, by, number)}, {group.allocations}, {group.at_peak}, {group.live}}});
  }
  if (order.size() > shown) {
    section.remarks.push_back("and " + count_text(order.size() - shown) + " more" + (what.empty() ? "" : " of " + what) +
                              ", in xlog report --json");
  }
}

}  // namespace

void make_named(SectionMaker& maker) {
  for (const GpuReport* gpu : maker.gpus) {
    Section section{.key = "named", .gpu = gpu, .is_detail = true};
    section.title = gpu_title(*gpu) + ": " + plural(gpu->allocations, "allocation") +
                    (gpu->failed != 0 ? ", " + count_text(gpu->failed) + " failed" : "");
    section.columns = {{"name", Unit::text},
                       {"allocations", Unit::count, "allocation"},
                       {"peak_bytes", Unit::bytes, "at the peak"},
                       {"end_bytes", Unit::bytes, "at the end"}};
    add_groups(maker, section, "tag ", By::tag, *gpu);
    add_groups(maker, section, "query ", By::query, *gpu);
    add_groups(maker, section, "kind ", By::kind, *gpu);
    add_groups(maker, section, "", By::stream, *gpu);
    add_groups(maker, section, "", By::thread, *gpu);
    if (!section.rows.empty() || maker.gpus.size() > 1) {
      maker.made.push_back(std::move(section));
    }
  }
}

// Ranks of one job do the same: what is worth saying is which of them does not.
void make_ranks(SectionMaker& maker) {
  constexpr size_t kFew = 4;
  constexpr double kFar = 3;
  const Report& report = maker.report;
  std::vector<size_t> ranks;
  for (size_t i = 0; i < report.processes.size(); ++i) {
    if (report.processes[i].peak != 0) {
      ranks.push_back(i);
    }
  }
  if (ranks.size() < kFew) {
    return;
  }
  auto peak = [&](size_t i) { return report.processes[i].peak; };
  std::sort(ranks.begin(), ranks.end(), [&](size_t a, size_t b) { return peak(a) != peak(b) ? peak(a) > peak(b) : a < b; });
  double sum = 0;
  for (size_t i : ranks) {
    sum += static_cast<double>(peak(i));
  }
  auto median = static_cast<double>(peak(ranks[ranks.size() / 2]));
  std::vector<double> distances;
  distances.reserve(ranks.size());
  for (size_t i : ranks) {
    distances.push_back(std::abs(static_cast<double>(peak(i)) - median));
  }
  std::nth_element(distances.begin(), distances.begin() + static_cast<long>(distances.size() / 2), distances.end());
  // At least 5 % away: where all but one are the same to the byte, a byte is no news.
  double bound = std::max(kFar * distances[distances.size() / 2], median / 20);
  Section& section = maker.add("ranks", nullptr,
                               "Peak of each process, on all its GPUs: min " + size_text(peak(ranks.back())) + ", average " +
                                   size_text(static_cast<uint64_t>(sum / static_cast<double>(ranks.size()))) + ", max " +
                                   size_text(peak(ranks.front())) + ", over " + count_text(ranks.size()) + " processes");
  section.columns = {{"process", Unit::text}, {"peak_bytes", Unit::bytes}, {"than_most", Unit::text}};
  size_t far = 0;
  for (size_t i : ranks) {
    double distance = static_cast<double>(peak(i)) - median;
    if (std::abs(distance) <= bound) {
      continue;
    }
    if (++far && section.rows.size() < 2 * maker.style.top) {
      const std::string& host = report.logs[i].host;
      section.rows.push_back({.cells = {{0, host + (host.empty() ? "" : " ") + label(report, By::process, i)},
                                        {peak(i)},
                                        {0, distance > 0 ? "more than most" : "less than most"}}});
    }
  }
  if (far > section.rows.size()) {
    section.remarks.push_back("and " + count_text(far - section.rows.size()) + " more that differ");
  }
}

namespace {

// What each process did on all GPUs, below the one that started it.
void add_process(const SectionMaker& maker, Section& section, size_t index, const std::vector<size_t>& parents, size_t depth) {
  const ProcessReport& process = maker.report.processes[index];
  uint64_t at_peak = 0;
  for (const GpuReport& gpu : maker.report.gpus) {
    for (const auto& [number, group] : gpu.by(By::process).entries()) {
      at_peak += gpu.is_gpu() && number == index ? group.at_peak : 0;
    }
  }
  std::string name = std::string(2 * depth, ' ') + label(maker.report, By::process, index);
  section.rows.push_back({.cells = {{0, name}, {process.allocations}, {at_peak}, {process.live}}});
  for (size_t i = 0; i < parents.size(); ++i) {
    if (parents[i] == index) {
      add_process(maker, section, i, parents, depth + 1);
    }
  }
}

}  // namespace

void make_processes(SectionMaker& maker) {
  constexpr size_t kMost = 100;
  const auto& logs = maker.report.logs;
  if (logs.size() < 2) {
    return;
  }
  Section& section = maker.add("processes", nullptr, "Processes");
  section.is_detail = true;
  section.columns = {{"process", Unit::text},
                     {"allocations", Unit::count, "allocation"},
                     {"peak_bytes", Unit::bytes, "at the peak"},
                     {"end_bytes", Unit::bytes, "at the end"}};
  if (logs.size() > kMost) {
    section.remarks.push_back(count_text(logs.size()) + ", in xlog report --json");
    return;
  }
  auto parents = parents_of(logs);
  for (size_t i = 0; i < parents.size(); ++i) {
    if (parents[i] == parents.size()) {
      add_process(maker, section, i, parents, 0);
    }
  }
}

}  // namespace xlog::tools
