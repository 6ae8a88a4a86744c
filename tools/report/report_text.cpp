#include <algorithm>

#include "tools/report/text_page.h"

namespace xlog::tools {

namespace {

// The next command to try: what was found decides.
void write_next(TextPage& page) {
  const Report& report = page.report;
  if (report.rows == 0) {
    return;
  }
  std::string name = name_of(report.logs);
  bool refused = std::any_of(report.gpus.begin(), report.gpus.end(), [](const GpuReport& g) { return g.refusals != 0; });
  bool has_stacks = !report.stacks.empty() && report.stacks[0].size() != 0;
  page.out += '\n';
  if (refused) {
    page.line("Next: xlog report --oom " + name + "   (what was known when memory was refused)");
  } else {
    page.line("Next: xlog report --at peak " + name + "   (all that was live then)");
  }
  page.line("      xlog report --html report.html " + name + "   (over time, as a flame graph)");
  if (has_stacks && !page.style.all_frames) {
    page.line("      xlog report --all-frames " + name + "   (whole stacks)");
  }
}

}  // namespace

std::string report_text(const Report& report, const ReportStyle& style) {
  TextPage page{report, style};
  GpuReport sum;
  page.gpus = told_gpus(report, sum);
  page.line(verdict(report));
  write_findings(page);
  write_notes(page);
  for (const GpuReport* gpu : page.gpus) {
    write_peak(page, *gpu);
    write_refusals(page, *gpu);
  }
  write_beyond(page);
  write_never_freed(page);
  write_freed_at_exit(page);
  write_growing(page);
  write_time(page);
  write_savings(page);
  write_temporary(page);
  write_lifetimes(page);
  write_sizes(page);
  write_splits(page);
  write_processes(page);
  write_next(page);
  return std::move(page.out);
}

}  // namespace xlog::tools
