#include <algorithm>
#include <filesystem>

#include "tools/report/format.h"
#include "tools/report/report.h"

namespace xlog::tools {

namespace {

const Stack* stack_of(const Report& report, const StackKey& where) { return report.stacks[where.process].find(where.stack); }

std::string cache_name(const Report& report, const StackKey& where) {
  const Stack* stack = stack_of(report, where);
  return stack != nullptr ? cache_of(*stack, report.logs[where.process].environment) : "";
}

std::string gpu_title(const GpuReport& gpu) {
  if (!gpu.is_gpu()) {
    return gpu.key == "host" ? "Pinned host memory" : "Imported memory (other processes' or APIs', not counted)";
  }
  std::string title = "GPU " + std::to_string(gpu.ordinal);
  return gpu.info.name.empty() ? title : title + " (" + gpu.info.name + ")";
}

class TextReport {
 public:
  TextReport(const Report& report, const ReportStyle& style) : report_(report), style_(style) {}

  std::string write() {
    line(verdict(report_));
    findings();
    about_the_log();
    for (const GpuReport& gpu : report_.gpus) {
      peak(gpu);
      refusals(gpu);
    }
    beyond();
    leaks();
    exits();
    time();
    savings();
    sizes();
    splits();
    processes();
    next();
    return std::move(out_);
  }

 private:
  void line(const std::string& text) { out_ += text + '\n'; }
  void heading(const std::string& text) { line("\n" + text); }

  void frames(const StackKey& where, const std::string& indent) {
    out_ += stack_text(stack_of(report_, where), report_.logs[where.process], style_, indent);
  }

  void holders(const std::vector<Holder>& list, uint64_t whole) {
    uint64_t rest = whole;
    for (const Holder& each : list) {
      line("  " + size_text(each.bytes) + "  " + share_text(each.bytes, whole) + "  " + plural(each.blocks, "block"));
      frames(each.where, "      ");
      rest -= std::min(rest, each.bytes);
    }
    if (rest != 0 && !list.empty()) {
      line("  " + size_text(rest) + "  " + share_text(rest, whole) + "  in other places");
    }
  }

  void findings() {
    for (const GuardFinding& each : report_.findings) {
      line("guard: " + each.text + "; found by " + each.found_by + ", " + time_text(each.time - report_.first_time) +
           " after the first call" + (each.where.stack != kNone ? "; the block was allocated at" : ""));
      if (each.where.stack != kNone) {
        frames(each.where, "      ");
      }
    }
  }

  void about_the_log() {
    for (const std::string& each : report_.problems) {
      line("note: " + each);
    }
    for (size_t i = 0; i < report_.logs.size(); ++i) {
      if (report_.cut[i]) {
        line("note: " + report_.logs[i].csv + ": the last row is not whole; read up to there");
      }
    }
    auto open_ended = static_cast<uint64_t>(std::count(report_.ended.begin(), report_.ended.end(), false));
    if (open_ended != 0 && report_.rows != 0) {
      line("note: " + (report_.logs.size() == 1 ? std::string("the log ends") : plural(open_ended, "log") + " end") +
           " without an end mark: the process was killed, or is running; what is live is live at that moment");
    }
    if (report_.lost != 0) {
      line("note: " + plural(report_.lost, "row") +
           " lost (disk full, a size limit, or XLOG_LOG_MAX): figures after that are too low or too high");
    }
    for (const ProcessLog& log : report_.logs) {
      if (log.sample != 0) {
        line("note: a sample, one row in " + size_text(log.sample) + " (XLOG_LOG_SAMPLE): bytes and counts are estimates");
      }
      if (log.least != 0) {
        line("note: blocks below " + size_text(log.least) + " are not in the log (XLOG_LOG_MIN)");
      }
      if (log.sample + log.least != 0) {
        break;
      }
    }
    if (report_.switches != 0) {
      line("note: the log was switched " + plural(report_.switches, "time") + " (xlog log), off for " + time_text(report_.off_ns) +
           " in between; what was made and freed then is not here, and what was made then has no stack");
    }
    if (report_.left_out != 0) {
      line("note: " + plural(report_.left_out, "allocation") + " of " + size_text(report_.left_out_bytes) + " in all without a row");
    }
    if (report_.unfinished_rows != 0) {
      line("note: " + plural(report_.unfinished_rows, "call") + " had not returned when the process ended: empty lines, skipped");
    }
    if (report_.foreign_rows != 0) {
      line("note: " + plural(report_.foreign_rows, "line") + " not of this log skipped");
    }
    if (report_.ended_unseen != 0) {
      line("note: " + plural(report_.ended_unseen, "block") + " freed out of sight (by a route that is not covered)");
    }
    if (report_.contradiction_count != 0) {
      line("note: the log contradicts itself in " + plural(report_.contradiction_count, "place") + " (xlog report --verify lists them)");
    }
  }

  void peak(const GpuReport& gpu) {
    if (gpu.peak == 0) {
      return;
    }
    std::string text = gpu_title(gpu) + ": peak " + size_text(gpu.peak);
    if (!gpu.is_gpu()) {
    } else if (gpu.info.limit_bytes != UINT64_MAX) {
      text += ", " + share_text(gpu.peak, gpu.info.limit_bytes) + " of the limit " + size_text(gpu.info.limit_bytes);
    } else if (gpu.info.total_bytes != 0) {
      text += ", " + share_text(gpu.peak, gpu.info.total_bytes) + " of " + size_text(gpu.info.total_bytes);
    }
    heading(text + ", " + time_text(gpu.peak_time - report_.first_time) + " after the first call; held by");
    holders(largest(gpu.stacks, &Group::at_peak, &Group::blocks_at_peak, style_.top), gpu.peak);
  }

  // Contexts, modules, what libraries take without asking: and all of other processes on the same GPU.
  void beyond() {
    for (const GpuReport& gpu : report_.gpus) {
      const DriverLook& most = gpu.most_look;
      if (most.beyond() == 0) {
        continue;
      }
      heading(gpu_title(gpu) + ": the driver had up to " + size_text(most.used) + " in use, by whomever; " + size_text(most.beyond()) +
              " more than the blocks above");
      line("  " + size_text(gpu.first_look.beyond()) +
           " at the first look (contexts, modules, other processes; XLOG_BUDGET_CONTEXT counts a part)");
      if (most.pool_idle != 0) {
        line("  " + size_text(most.pool_idle) + " held by the default pool and in no block");
      }
    }
    if (!report_.unhooked.empty()) {
      std::string names;
      for (const std::string& each : report_.unhooked) {
        names += ' ' + each;
      }
      heading("Handed out and not covered, though they may make memory:" + names);
    }
  }

  void refusals(const GpuReport& gpu) {
    if (gpu.refusals == 0) {
      return;
    }
    heading(gpu_title(gpu) + ": " + plural(gpu.refusals, "request") + " refused for want of memory");
    size_t shown = 0;
    for (const Refusal& each : gpu.refused) {
      if (shown++ == 3) {
        break;
      }
      bool by_limit = each.message.starts_with("out of budget");
      line("  " + time_text(each.time - report_.first_time) + ": asked for " +
           (each.requested == kNone ? "more than 64 bits hold" : size_text(each.requested)) + ", in use " + size_text(each.live) +
           ", refused by " +
           (!by_limit      ? "the driver"
            : gpu.is_gpu() ? "the limit (XLOG_BUDGET)"
                           : "the limit (XLOG_HOST_BUDGET)"));
      frames({each.process, each.stack}, "      ");
      if (!each.holders.empty() && each.live != 0) {
        line("    in use then:");
        std::vector<Holder> top(each.holders.begin(), each.holders.begin() + static_cast<long>(std::min(style_.top, each.holders.size())));
        holders(top, each.live);
      }
    }
  }

  void by_group(const std::string& title, uint64_t Group::*bytes, uint64_t Group::*blocks) {
    for (const GpuReport& gpu : report_.gpus) {
      uint64_t whole = 0;
      for (const auto& [where, group] : gpu.stacks) {
        whole += group.*bytes;
      }
      if (whole != 0) {
        heading(gpu_title(gpu) + ": " + size_text(whole) + " " + title);
        holders(largest(gpu.stacks, bytes, blocks, style_.top), whole);
      }
    }
  }

  void leaks() { by_group("never freed", &Group::live, &Group::live_blocks); }
  void exits() { by_group("freed only at exit", &Group::freed_at_exit, &Group::freed_at_exit_blocks); }

  void time() {
    uint64_t wall = report_.last_time - report_.first_time;
    if (report_.calls == 0 || report_.call_ns == 0) {
      return;
    }
    heading("Time in allocation calls: " + time_text(report_.call_ns) + " in " + plural(report_.calls, "call") + ", " +
            share_text(report_.call_ns, wall) + " of the time from first to last");
    std::vector<std::pair<StackKey, StackTime>> all(report_.time.begin(), report_.time.end());
    std::sort(all.begin(), all.end(),
              [](const auto& a, const auto& b) { return a.second.ns != b.second.ns ? a.second.ns > b.second.ns : a.first < b.first; });
    for (size_t i = 0; i < std::min(all.size(), style_.top) && all[i].second.ns * 100 >= report_.call_ns; ++i) {
      line("  " + time_text(all[i].second.ns) + "  " + share_text(all[i].second.ns, report_.call_ns) + "  " +
           plural(all[i].second.calls, "call") + ", " + time_text(all[i].second.ns / all[i].second.calls) + " each");
      frames(all[i].first, "      ");
    }
  }

  // Not worth a line for less than this.
  static constexpr uint64_t kWorthTelling = 1'000'000;

  void savings() {
    const Saving& all = report_.saving;
    if (all.by(all.best()) < kWorthTelling) {
      return;
    }
    heading("Estimate: of " + time_text(all.spent) + " in cuMemAlloc and cuMemFree a backend would have saved");
    for (size_t i = 0; i < kSavers; ++i) {
      line("  " + time_text(all.saved[i]) + "  " + share_text(all.saved[i], all.spent) + "  " + saver_name(static_cast<Saver>(i)));
    }
    std::vector<std::pair<StackKey, Saving>> stacks(report_.savings.begin(), report_.savings.end());
    Saver best = all.best();
    std::sort(stacks.begin(), stacks.end(), [best](const auto& a, const auto& b) {
      return a.second.by(best) != b.second.by(best) ? a.second.by(best) > b.second.by(best) : a.first < b.first;
    });
    line("  by " + std::string(saver_name(best)) + ", most for");
    for (size_t i = 0; i < std::min(stacks.size(), style_.top) && stacks[i].second.by(best) * 100 >= all.by(best); ++i) {
      line("  " + time_text(stacks[i].second.by(best)) + "  of " + time_text(stacks[i].second.spent));
      frames(stacks[i].first, "      ");
    }
  }

  void sizes() {
    uint64_t most = *std::max_element(report_.sizes.begin(), report_.sizes.end());
    if (most == 0) {
      return;
    }
    heading("Sizes requested");
    for (size_t i = 0; i < report_.sizes.size(); ++i) {
      if (report_.sizes[i] != 0) {
        std::string bar(static_cast<size_t>(1 + 39 * report_.sizes[i] / most), '#');
        std::string label = i == 64 ? size_text(uint64_t{1} << 63) + " and more" : "below " + size_text(uint64_t{1} << i);
        line("  " + label + std::string(label.size() < 18 ? 18 - label.size() : 1, ' ') + count_text(report_.sizes[i]) + "  " + bar);
      }
    }
  }

  // What the program says of its memory; blocks of which it says nothing are the rest.
  void named_groups(const char* what, const std::map<std::string, Group>& groups) {
    std::vector<std::pair<std::string, Group>> all(groups.begin(), groups.end());
    std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second.at_peak > b.second.at_peak; });
    for (size_t i = 0; i < std::min(all.size(), 2 * style_.top); ++i) {
      const Group& group = all[i].second;
      line(std::string("  ") + what + ' ' + all[i].first + ": " + plural(group.allocations, "allocation") + ", " +
           size_text(group.at_peak) + " at the peak, " + size_text(group.live) + " at the end");
    }
    if (all.size() > 2 * style_.top) {
      line("  and " + count_text(all.size() - 2 * style_.top) + " more, in xlog report --json");
    }
  }

  void splits() {
    for (const GpuReport& gpu : report_.gpus) {
      bool is_named = !gpu.tags.empty() || !gpu.queries.empty();
      if (is_named || gpu.kinds.size() > 1 || gpu.threads.size() > 1 || report_.gpus.size() > 1) {
        heading(gpu_title(gpu) + ": " + plural(gpu.allocations, "allocation") +
                (gpu.failed != 0 ? ", " + count_text(gpu.failed) + " failed" : ""));
      }
      named_groups("tag", gpu.tags);
      named_groups("query", gpu.queries);
      if (gpu.kinds.size() > 1) {
        for (const auto& [name, group] : gpu.kinds) {
          line("  kind " + name + ": " + plural(group.allocations, "allocation") + ", " + size_text(group.at_peak) + " at the peak");
        }
      }
      if (gpu.threads.size() > 1) {
        std::vector<std::pair<std::pair<size_t, uint64_t>, Group>> all(gpu.threads.begin(), gpu.threads.end());
        std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second.at_peak > b.second.at_peak; });
        for (size_t i = 0; i < std::min(all.size(), 2 * style_.top); ++i) {
          auto name = report_.thread_names.find(all[i].first);
          line("  thread " + std::to_string(all[i].first.second) +
               (name != report_.thread_names.end() && !name->second.empty() ? " (" + name->second + ")" : "") + ": " +
               plural(all[i].second.allocations, "allocation") + ", " + size_text(all[i].second.at_peak) + " at the peak");
        }
      }
    }
  }

  // What each process did on all GPUs, below the one that started it.
  void process(size_t index, const std::vector<size_t>& parents, const std::string& indent) {
    const ProcessLog& log = report_.logs[index];
    uint64_t allocations = 0;
    uint64_t at_peak = 0;
    uint64_t live = 0;
    for (const GpuReport& gpu : report_.gpus) {
      for (const auto& [thread, group] : gpu.threads) {
        if (thread.first == index && gpu.is_gpu()) {
          allocations += group.allocations;
          at_peak += group.at_peak;
          live += group.live;
        }
      }
    }
    line(indent + std::to_string(log.pid) + ' ' + (log.arguments.empty() ? log.program : log.arguments).substr(0, 100) + ": " +
         plural(allocations, "allocation") + ", " + size_text(at_peak) + " at the peak" +
         (live != 0 ? ", " + size_text(live) + " at the end" : ""));
    for (size_t i = 0; i < parents.size(); ++i) {
      if (parents[i] == index) {
        process(i, parents, indent + "  ");
      }
    }
  }

  void processes() {
    constexpr size_t kMost = 100;
    if (report_.logs.size() < 2) {
      return;
    }
    heading("Processes");
    if (report_.logs.size() > kMost) {
      line("  " + count_text(report_.logs.size()) + ", in xlog report --json");
      return;
    }
    auto parents = parents_of(report_.logs);
    for (size_t i = 0; i < parents.size(); ++i) {
      if (parents[i] == parents.size()) {
        process(i, parents, "  ");
      }
    }
  }

  void next() {
    if (report_.rows == 0) {
      return;
    }
    std::string name = name_of(report_.logs);
    bool refused = std::any_of(report_.gpus.begin(), report_.gpus.end(), [](const GpuReport& g) { return g.refusals != 0; });
    if (!style_.all_frames && !report_.stacks.empty() && report_.stacks[0].size() != 0) {
      line("\nNext: xlog report --all-frames " + name + (refused ? "   (whole stacks of what held the memory)" : "   (whole stacks)"));
    } else {
      line("\nNext: xlog report --json " + name + "   (for machines)");
    }
  }

  const Report& report_;
  const ReportStyle& style_;
  std::string out_;
};

}  // namespace

std::string report_text(const Report& report, const ReportStyle& style) { return TextReport(report, style).write(); }

std::string holder_name(const Report& report, const StackKey& where) {
  std::string cache = cache_name(report, where);
  if (!cache.empty()) {
    return cache + " (what is inside is not visible)";
  }
  const Stack* stack = stack_of(report, where);
  if (stack == nullptr || stack->frames.empty()) {
    return "(no stack)";
  }
  const Frame& first = *visible_frames(*stack, false).front();
  return name_of(first) + "  " + where_of(first);
}

std::string stack_text(const Stack* stack, const ProcessLog& log, const ReportStyle& style, const std::string& indent) {
  if (stack == nullptr) {
    return indent + "(no stack)\n";
  }
  std::string text;
  std::string cache = cache_of(*stack, log.environment);
  if (!cache.empty()) {
    text += indent + cache + ": what is inside is not visible\n";
  }
  std::vector<const Frame*> shown = visible_frames(*stack, style.all_frames);
  size_t n = style.all_frames ? shown.size() : std::min(style.frames, shown.size());
  for (size_t i = 0; i < n; ++i) {
    text += indent + name_of(*shown[i]) + "  " + where_of(*shown[i]) + '\n';
  }
  return text;
}

std::string verdict(const Report& report) {
  if (report.rows == 0) {
    return "No device memory call is in the log.";
  }
  uint64_t refusals = 0;
  uint64_t leaked = 0;
  const GpuReport* highest = nullptr;
  for (const GpuReport& gpu : report.gpus) {
    refusals += gpu.refusals;
    leaked += gpu.is_gpu() ? gpu.live : 0;
    if (gpu.is_gpu() && (highest == nullptr || gpu.peak > highest->peak)) {
      highest = &gpu;
    }
  }
  std::string text;
  if (!report.findings.empty()) {
    text = "The guard found " + plural(report.findings.size(), "misuse") + " of memory. ";
  }
  if (refusals != 0) {
    text += "Out of memory: " + plural(refusals, "request") + " refused.";
  }
  if (highest != nullptr && highest->peak != 0) {
    auto top = largest(highest->stacks, &Group::at_peak, &Group::blocks_at_peak, 1);
    text += (text.empty() || text.back() == ' ' ? "" : " ") + std::string("Peak ") + size_text(highest->peak) + " on GPU " +
            std::to_string(highest->ordinal);
    if (!top.empty()) {
      text += ", " + share_text(top[0].bytes, highest->peak) + " of it held by " + holder_name(report, top[0].where);
    }
    text += '.';
  }
  if (leaked != 0) {
    text += " " + size_text(leaked) + " never freed.";
  } else if (highest != nullptr) {
    text += " Everything was freed.";
  }
  return text.empty() ? "No memory was allocated." : text;
}

std::string summary_text(const Report& report, const std::string& ending, uint64_t wall_ns, const std::string& where) {
  std::string out;
  size_t lines = 0;
  auto line = [&](const std::string& text) {
    if (lines++ < 9) {
      out += "xlog: " + text + '\n';
    }
  };
  if (!ending.empty()) {
    line(ending);
  }
  auto gpus = std::count_if(report.gpus.begin(), report.gpus.end(), [](const GpuReport& gpu) { return gpu.is_gpu(); });
  for (const GpuReport& gpu : report.gpus) {
    if (!gpu.is_gpu()) {
      if (gpu.peak != 0 && gpu.key == "host") {
        line(gpu_title(gpu) + ": peak " + size_text(gpu.peak));
      }
    } else if (gpu.peak != 0) {
      line(gpu_title(gpu) + ": peak " + size_text(gpu.peak) +
           (gpu.info.limit_bytes != UINT64_MAX ? " of " + size_text(gpu.info.limit_bytes) + " allowed" : "") + ", " +
           (gpu.live != 0 ? size_text(gpu.live) + " never freed" : "everything freed") + "; at the peak:");
      for (const Holder& each : largest(gpu.stacks, &Group::at_peak, &Group::blocks_at_peak, gpus > 1 ? 1 : 3)) {
        line("  " + size_text(each.bytes) + "  " + share_text(each.bytes, gpu.peak) + "  " + holder_name(report, each.where));
      }
    }
    if (gpu.most_look.beyond() != 0) {
      line(gpu_title(gpu) + ": the driver had up to " + size_text(gpu.most_look.used) + " in use, " + size_text(gpu.most_look.beyond()) +
           " more than these blocks");
    }
    if (gpu.refusals != 0) {
      const Refusal& first = gpu.refused.front();
      line(gpu_title(gpu) + ": " + plural(gpu.refusals, "request") + " refused for want of memory; the first asked for " +
           (first.requested == kNone ? "more than there is" : size_text(first.requested)) + " with " + size_text(first.live) + " in use");
    }
  }
  if (report.rows == 0) {
    line("no device memory call was seen (xlog doctor -- COMMAND says what would be)");
  } else if (report.call_ns != 0) {
    line("allocation calls: " + plural(report.calls, "call") + ", " + time_text(report.call_ns) + ", " +
         share_text(report.call_ns, wall_ns) + " of wall time");
  }
  if (report.lost != 0) {
    out += "xlog: " + plural(report.lost, "row") + " not logged (see the report)\n";
  }
  if (!where.empty() && report.rows != 0) {
    out += "xlog: log in " + where + "\nxlog: next: xlog report " + where + '\n';
  }
  return out;
}

}  // namespace xlog::tools
