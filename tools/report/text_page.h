// A report for people, being written: what its sections share.
#pragma once

#include <string>
#include <vector>

#include "tools/report/format.h"
#include "tools/report/report.h"
#include "tools/report/safe_text.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

struct TextPage {
  const Report& report;
  const ReportStyle& style;
  // What the sections are about: the report's, or where these are too many to tell one by one, their sum.
  std::vector<const GpuReport*> gpus = {};
  std::string out = {};

  // What is written here comes from logs: the line is made safe for a terminal, and stays one line.
  void line(const std::string& text) { out += terminal_line(text) + '\n'; }
  void heading(const std::string& text) {
    out += '\n';
    line(text);
  }
  void frames(uint32_t place, const std::string& indent) {
    out += terminal_text(stack_text(report.stack(place), report.log_of(place), style.all_frames, style.frames, indent));
  }
  // Who holds what of `whole`, and the rest.
  void holders(const std::vector<Holder>& list, uint64_t whole);
  void fragmentation(const Holes& holes, const std::string& indent);
};

// Sections, in the order of a page. Each writes nothing where there is nothing to tell.
void write_findings(TextPage& page);
void write_notes(TextPage& page);
void write_peak(TextPage& page, const GpuReport& gpu);
void write_refusals(TextPage& page, const GpuReport& gpu);
void write_beyond(TextPage& page);
void write_never_freed(TextPage& page);
void write_freed_at_exit(TextPage& page);
void write_growing(TextPage& page);
void write_time(TextPage& page);
void write_savings(TextPage& page);
void write_temporary(TextPage& page);
void write_lifetimes(TextPage& page);
void write_sizes(TextPage& page);
void write_splits(TextPage& page);
void write_processes(TextPage& page);

}  // namespace xlog::tools
