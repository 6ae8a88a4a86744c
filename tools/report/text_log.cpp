// The sections about the log itself, and about who is who in it.
#include <algorithm>
#include <cmath>

#include "tools/report/text_page.h"

namespace xlog::tools {

void write_findings(TextPage& page) {
  for (const GuardFinding& each : page.report.findings) {
    bool has_stack = page.report.places[each.place].stack != kNone;
    page.line("guard: " + each.text + "; found by " + each.found_by + ", " + time_text(each.time - page.report.first_time) +
              " after the first call" + (has_stack ? "; the block was allocated at" : ""));
    if (has_stack) {
      page.frames(each.place, "      ");
    }
  }
}

namespace {

void note_kept_back(TextPage& page) {
  for (const ProcessLog& log : page.report.logs) {
    if (log.sample != 0) {
      page.line("note: a sample, one row in " + size_text(log.sample) + " (XLOG_LOG_SAMPLE): bytes and counts are estimates");
    }
    if (log.least != 0) {
      page.line("note: blocks below " + size_text(log.least) + " are not in the log (XLOG_LOG_MIN)");
    }
    if (log.sample + log.least != 0) {
      break;
    }
  }
}

}  // namespace

void write_notes(TextPage& page) {
  const Report& report = page.report;
  for (const std::string& each : report.problems) {
    page.line("note: " + each);
  }
  uint64_t open_ended = 0;
  uint64_t running = 0;
  for (size_t i = 0; i < report.logs.size(); ++i) {
    open_ended += report.processes[i].ended || report.processes[i].runs ? 0 : 1;
    running += report.processes[i].runs ? 1 : 0;
    if (report.processes[i].cut) {
      page.line("note: " + report.logs[i].csv + ": the last row is not whole; read up to there");
    }
  }
  if (running != 0) {
    page.line("note: " + (report.logs.size() == 1 ? std::string("the process is") : count_text(running) + " of the processes are") +
              " still running: what is live may yet be freed");
  }
  if (open_ended != 0 && report.rows != 0) {
    page.line("note: " +
              (report.logs.size() == 1 ? std::string("the log ends") : plural(open_ended, "log") + (open_ended == 1 ? " ends" : " end")) +
              " without an end mark: the process was killed, or is running; what is live is live at that moment");
  }
  if (report.lost != 0) {
    page.line("note: " + plural(report.lost, "row") +
              " lost (disk full, a size limit, or XLOG_LOG_MAX): figures after that are too low or too high");
  }
  note_kept_back(page);
  if (report.switches != 0) {
    page.line("note: the log was switched " + plural(report.switches, "time") + " (xlog log), off for " + time_text(report.off_ns) +
              " in between; what was made and freed then is not here, and what was made then has no stack");
  }
  if (report.left_out != 0) {
    page.line("note: " + plural(report.left_out, "allocation") + " of " + size_text(report.left_out_bytes) + " in all without a row");
  }
  if (report.unfinished_rows != 0) {
    page.line("note: " + plural(report.unfinished_rows, "call") + " had not returned when the process ended: empty lines, skipped");
  }
  if (report.foreign_rows != 0) {
    page.line("note: " + plural(report.foreign_rows, "line") + " not of this log skipped; " + report.notes.front());
  }
  if (report.ended_unseen != 0) {
    page.line("note: " + plural(report.ended_unseen, "block") + " freed out of sight (by a route that is not covered)");
  }
  if (report.contradiction_count != 0) {
    page.line("note: the log contradicts itself in " + plural(report.contradiction_count, "place") + " (xlog report --verify lists them)");
  }
}

namespace {

// What the program says of its memory; blocks of which it says nothing are the rest.
void write_named(TextPage& page, const std::string& what, By by, const GpuReport& gpu, bool with_end) {
  std::vector<Groups::Entry> order;
  size_t first = by == By::tag || by == By::query ? 1 : 0;
  for (const Groups::Entry& each : gpu.by(by).entries()) {
    if (each.number >= first && each.group.allocations + each.group.live + each.group.at_peak != 0) {
      order.push_back(each);
    }
  }
  if (first == 0 && order.size() < 2) {
    return;
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.group.at_peak > b.group.at_peak; });
  for (size_t i = 0; i < std::min(order.size(), 2 * page.style.top); ++i) {
    const auto& [number, group] = order[i];
    page.line("  " + what + label(page.report, by, number) + ": " + plural(group.allocations, "allocation") + ", " +
              size_text(group.at_peak) + " at the peak" + (with_end ? ", " + size_text(group.live) + " at the end" : ""));
  }
  if (order.size() > 2 * page.style.top) {
    page.line("  and " + count_text(order.size() - 2 * page.style.top) + " more, in xlog report --json");
  }
}

// Number 0 stands for blocks without a name.
bool has_names(const Groups& groups) {
  const auto& all = groups.entries();
  return std::any_of(all.begin(), all.end(), [](const auto& each) { return each.number != 0; });
}

size_t used(const Groups& groups) {
  const auto& all = groups.entries();
  return static_cast<size_t>(std::count_if(all.begin(), all.end(), [](const auto& each) { return each.group.allocations != 0; }));
}

}  // namespace

void write_splits(TextPage& page) {
  for (const GpuReport* each_gpu : page.gpus) {
    const GpuReport& gpu = *each_gpu;
    bool is_named = has_names(gpu.by(By::tag)) || has_names(gpu.by(By::query));
    if (is_named || used(gpu.by(By::kind)) > 1 || used(gpu.by(By::thread)) > 1 || used(gpu.by(By::stream)) > 1 || page.gpus.size() > 1) {
      page.heading(gpu_title(gpu) + ": " + plural(gpu.allocations, "allocation") +
                   (gpu.failed != 0 ? ", " + count_text(gpu.failed) + " failed" : ""));
    }
    write_named(page, "tag ", By::tag, gpu, true);
    write_named(page, "query ", By::query, gpu, true);
    write_named(page, "kind ", By::kind, gpu, false);
    write_named(page, "", By::stream, gpu, false);
    write_named(page, "", By::thread, gpu, false);
  }
}

namespace {

// What each process did on all GPUs, below the one that started it.
void write_process(TextPage& page, size_t index, const std::vector<size_t>& parents, const std::string& indent) {
  const ProcessReport& process = page.report.processes[index];
  uint64_t at_peak = 0;
  for (const GpuReport& gpu : page.report.gpus) {
    for (const auto& [number, group] : gpu.by(By::process).entries()) {
      at_peak += gpu.is_gpu() && number == index ? group.at_peak : 0;
    }
  }
  page.line(indent + label(page.report, By::process, index) + ": " + plural(process.allocations, "allocation") + ", " + size_text(at_peak) +
            " at the peak" + (process.live != 0 ? ", " + size_text(process.live) + " at the end" : ""));
  for (size_t i = 0; i < parents.size(); ++i) {
    if (parents[i] == index) {
      write_process(page, i, parents, indent + "  ");
    }
  }
}

// Ranks of one job do the same: what is worth telling is who does not.
void write_ranks(TextPage& page) {
  constexpr size_t kFew = 4;
  constexpr double kFar = 3;
  std::vector<size_t> ranks;
  for (size_t i = 0; i < page.report.processes.size(); ++i) {
    if (page.report.processes[i].peak != 0) {
      ranks.push_back(i);
    }
  }
  if (ranks.size() < kFew) {
    return;
  }
  auto peak = [&](size_t i) { return page.report.processes[i].peak; };
  std::sort(ranks.begin(), ranks.end(), [&](size_t a, size_t b) { return peak(a) != peak(b) ? peak(a) > peak(b) : a < b; });
  double sum = 0;
  for (size_t i : ranks) {
    sum += static_cast<double>(peak(i));
  }
  double mean = sum / static_cast<double>(ranks.size());
  auto median = static_cast<double>(peak(ranks[ranks.size() / 2]));
  std::vector<double> distances;
  distances.reserve(ranks.size());
  for (size_t i : ranks) {
    distances.push_back(std::abs(static_cast<double>(peak(i)) - median));
  }
  std::nth_element(distances.begin(), distances.begin() + static_cast<long>(distances.size() / 2), distances.end());
  // At least 5 % away: where all but one are the same to the byte, a byte is no news.
  double bound = std::max(kFar * distances[distances.size() / 2], median / 20);
  page.heading("Peak of each process, on all its GPUs: min " + size_text(peak(ranks.back())) + ", average " +
               size_text(static_cast<uint64_t>(mean)) + ", max " + size_text(peak(ranks.front())) + ", over " + count_text(ranks.size()) +
               " processes");
  size_t told = 0;
  size_t far = 0;
  for (size_t i : ranks) {
    double distance = static_cast<double>(peak(i)) - median;
    if (std::abs(distance) <= bound) {
      continue;
    }
    if (++far && told < 2 * page.style.top) {
      ++told;
      page.line("  " + page.report.logs[i].host + (page.report.logs[i].host.empty() ? "" : " ") + label(page.report, By::process, i) +
                ": " + size_text(peak(i)) + (distance > 0 ? ", more than most" : ", less than most"));
    }
  }
  if (far > told) {
    page.line("  and " + count_text(far - told) + " more that differ");
  }
}

}  // namespace

void write_processes(TextPage& page) {
  constexpr size_t kMost = 100;
  const auto& logs = page.report.logs;
  if (logs.size() < 2) {
    return;
  }
  write_ranks(page);
  page.heading("Processes");
  if (logs.size() > kMost) {
    page.line("  " + count_text(logs.size()) + ", in xlog report --json");
    return;
  }
  auto parents = parents_of(logs);
  for (size_t i = 0; i < parents.size(); ++i) {
    if (parents[i] == parents.size()) {
      write_process(page, i, parents, "  ");
    }
  }
}

}  // namespace xlog::tools
