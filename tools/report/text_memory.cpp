// The sections about who held the memory.
#include <algorithm>
#include <map>

#include "tools/log/libraries.h"
#include "tools/report/text_page.h"

namespace xlog::tools {

namespace {

// The highest of each sixteenth step, as eighths of the peak.
std::string sparkline(const GpuReport& gpu) {
  constexpr const char* kBlocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr size_t kColumns = 60;
  const std::vector<uint64_t>& steps = gpu.timeline.highest();
  std::string text;
  for (size_t i = 0; i < kColumns && !steps.empty(); ++i) {
    size_t width = steps.size() / kColumns;
    auto begin = steps.begin() + static_cast<long>(i * width);
    uint64_t highest = *std::max_element(begin, begin + static_cast<long>(width));
    text += kBlocks[highest == 0 || gpu.peak == 0
                        ? 0
                        : 1 + static_cast<size_t>(7.0 * static_cast<double>(highest) / static_cast<double>(gpu.peak))];
  }
  return text;
}

// What libraries and caches held, largest first; only where there is more than one.
void write_libraries(TextPage& page, const GpuReport& gpu, uint64_t Group::*bytes, uint64_t whole) {
  std::map<std::string, uint64_t> held;
  for (const auto& [place, group] : gpu.by(By::stack).entries()) {
    if (group.*bytes != 0) {
      held[library_of(page.report.stack(place), page.report.log_of(place).environment)] += group.*bytes;
    }
  }
  if (held.size() < 2) {
    return;
  }
  std::vector<std::pair<std::string, uint64_t>> all(held.begin(), held.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text = "  by library:";
  for (size_t i = 0; i < std::min(all.size(), page.style.top); ++i) {
    text += (i == 0 ? " " : ", ") + all[i].first + ' ' + size_text(all[i].second) + " (" + share_text(all[i].second, whole) + ')';
  }
  page.line(text);
}

void write_by_stack(TextPage& page, const std::string& title, uint64_t Group::*bytes, uint64_t Group::*blocks, bool suppress) {
  for (const GpuReport* each_gpu : page.gpus) {
    const GpuReport& gpu = *each_gpu;
    Groups groups = gpu.by(By::stack);
    uint64_t whole = 0;
    uint64_t suppressed = 0;
    for (const auto& [place, group] : gpu.by(By::stack).entries()) {
      if (suppress && group.*blocks != 0 && page.style.suppressions.match(page.report.stack(place))) {
        suppressed += group.*bytes;
        groups.at(place) = {};
      } else {
        whole += group.*bytes;
      }
    }
    if (whole != 0) {
      page.heading(gpu_title(gpu) + ": " + size_text(whole) + " " + title);
      page.holders(largest(groups, bytes, blocks, page.style.top), whole);
    }
    if (suppressed != 0) {
      page.line((whole == 0 ? "\n" + gpu_title(gpu) + ": " : "  ") + size_text(suppressed) + " more " + title + ", suppressed");
    }
  }
}

}  // namespace

void TextPage::holders(const std::vector<Holder>& list, uint64_t whole) {
  uint64_t rest = whole;
  for (const Holder& each : list) {
    line("  " + size_text(each.bytes) + "  " + share_text(each.bytes, whole) + "  " + plural(each.blocks, "block"));
    frames(each.place, "      ");
    rest -= std::min(rest, each.bytes);
  }
  if (rest != 0 && !list.empty()) {
    line("  " + size_text(rest) + "  " + share_text(rest, whole) + "  in other places");
  }
}

void TextPage::fragmentation(const Holes& holes, const std::string& indent) {
  if (holes.known && holes.count != 0) {
    line(indent + "addresses that blocks have left: " + size_text(holes.bytes) + " in " + plural(holes.count, "hole") + ", the largest " +
         size_text(holes.largest));
  }
}

void write_peak(TextPage& page, const GpuReport& gpu) {
  if (gpu.peak == 0) {
    return;
  }
  std::string text = gpu_title(gpu) + ": peak " + size_text(gpu.peak);
  if (!gpu.is_gpu()) {
  } else if (gpu.info.limit_bytes != UINT64_MAX) {
    text += gpu.peak > gpu.info.limit_bytes  // a limit is one process's
                ? " of several processes, each with the limit " + size_text(gpu.info.limit_bytes)
                : ", " + share_text(gpu.peak, gpu.info.limit_bytes) + " of the limit " + size_text(gpu.info.limit_bytes);
  } else if (gpu.info.total_bytes != 0) {
    text += gpu.peak > gpu.info.total_bytes  // managed memory, which may lie on the host
                ? ", more than the GPU's " + size_text(gpu.info.total_bytes)
                : ", " + share_text(gpu.peak, gpu.info.total_bytes) + " of " + size_text(gpu.info.total_bytes);
  }
  page.heading(gpu.stands_for != 1 ? gpu_title(gpu) + ": " + size_text(gpu.peak) + " in all, each at its own peak; held by"
                                   : text + ", " + time_text(gpu.peak_time - page.report.first_time) + " after the first call; held by");
  page.holders(largest(gpu.by(By::stack), &Group::at_peak, &Group::blocks_at_peak, page.style.top), gpu.peak);
  if (gpu.is_gpu()) {
    write_libraries(page, gpu, &Group::at_peak, gpu.peak);
    if (gpu.peak_taken > gpu.peak + gpu.peak / 50) {
      page.line("  the driver rounds that to " + size_text(gpu.peak_taken) + ": " + size_text(gpu.peak_taken - gpu.peak) +
                " more (512 B steps, 2 MiB above 1 MiB)");
    }
    if (!gpu.timeline.highest().empty()) {
      page.line("  over the run: |" + sparkline(gpu) + "|");
    }
  }
}

// Contexts, modules, what libraries take without asking: and all of other processes on the same GPU.
void write_beyond(TextPage& page) {
  for (const GpuReport* each_gpu : page.gpus) {
    const GpuReport& gpu = *each_gpu;
    const DriverLook& most = gpu.most_look;
    if (most.beyond() == 0) {
      continue;
    }
    page.heading(gpu_title(gpu) + ": the driver had up to " + size_text(most.used) + " in use, by whomever; " + size_text(most.beyond()) +
                 " more than the blocks above");
    page.line("  " + size_text(gpu.first_look.beyond()) +
              " at the first look (contexts, modules, other processes; XLOG_BUDGET_CONTEXT counts a part)");
    if (most.pool_idle != 0) {
      page.line("  " + size_text(most.pool_idle) + " held by the default pool and in no block");
    }
  }
  if (!page.report.unhooked.empty()) {
    std::string names;
    for (const std::string& each : page.report.unhooked) {
      names += ' ' + each;
    }
    page.heading("Handed out and not covered, though they may make memory:" + names);
  }
}

void write_refusals(TextPage& page, const GpuReport& gpu) {
  constexpr size_t kShown = 3;
  if (gpu.refusals == 0) {
    return;
  }
  page.heading(gpu_title(gpu) + ": " + plural(gpu.refusals, "request") + " refused for want of memory");
  for (size_t i = 0; i < std::min(kShown, gpu.refused.size()); ++i) {
    const Refusal& each = gpu.refused[i];
    page.line("  " + time_text(each.time - page.report.first_time) + ": asked for " +
              (each.requested == kNone ? "more than 64 bits hold" : size_text(each.requested)) + ", in use " + size_text(each.live) +
              ", refused by " +
              (each.result == "rmm::bad_alloc" ? "the resource (rmm::bad_alloc)"
               : !each.by_limit()              ? "the driver"
               : gpu.is_gpu()                  ? "the limit (XLOG_BUDGET)"
                                               : "the limit (XLOG_HOST_BUDGET)"));
    page.frames(each.place, "      ");
    if (!each.holders.empty() && each.live != 0) {
      page.line("    in use then:");
      std::vector<Holder> top(each.holders.begin(),
                              each.holders.begin() + static_cast<long>(std::min(page.style.top, each.holders.size())));
      page.holders(top, each.live);
      page.fragmentation(each.holes, "    ");
    }
  }
}

void write_never_freed(TextPage& page) { write_by_stack(page, left_text(page.report), &Group::live, &Group::live_blocks, true); }

void write_freed_at_exit(TextPage& page) {
  write_by_stack(page, "freed only at exit", &Group::freed_at_exit, &Group::freed_at_exit_blocks, false);
}

void write_growing(TextPage& page) {
  for (const GpuReport* each_gpu : page.gpus) {
    const GpuReport& gpu = *each_gpu;
    if (gpu.growing.empty()) {
      continue;
    }
    page.heading(gpu_title(gpu) + ": still growing, from one eighth of the run to the next over its second half");
    for (size_t i = 0; i < std::min(page.style.top, gpu.growing.size()); ++i) {
      const Growth& each = gpu.growing[i];
      page.line("  from " + size_text(each.from) + " to " + size_text(each.to));
      page.frames(each.place, "      ");
    }
  }
}

std::string live_text(const Report& report, const ReportStyle& style, const std::string& moment) {
  TextPage page{report, style};
  GpuReport sum;
  page.gpus = told_gpus(report, sum);
  for (const GpuReport* each_gpu : page.gpus) {
    const GpuReport& gpu = *each_gpu;
    page.line(gpu_title(gpu) + ": " + size_text(gpu.live) + " in " + plural(gpu.live_blocks, "block") + " live " + moment + "; held by");
    page.holders(largest(gpu.by(By::stack), &Group::live, &Group::live_blocks, style.top), gpu.live);
    write_libraries(page, gpu, &Group::live, gpu.live);
    page.fragmentation(gpu.holes, "  ");
  }
  if (report.gpus.empty()) {
    page.line("Nothing was live " + moment + ".");
  }
  return page.out;
}

}  // namespace xlog::tools
