// A Report as text for people, as JSON for machines, and as the few lines that `xlog run` ends with.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tools/analysis/analysis.h"
#include "tools/analysis/suppressions.h"
#include "tools/analysis/whatis.h"
#include "tools/report/lines.h"

namespace xlog::tools {

struct ReportStyle {
  bool all_frames = false;
  size_t top = 5;     // stacks a section
  size_t frames = 3;  // shown of each
  Suppressions suppressions = {};
};

// All sections, with stacks.
std::string report_text(const Report& report, const ReportStyle& style);
// At most 40 lines of the terminal's width: what matters, the first name of each stack, and what to try next.
std::string short_report_text(const Report& report, const ReportStyle& style, const Terminal& terminal);
// The schema: tools/report/report.schema.json.
std::string report_json(const Report& report, const ReportStyle& style);
// At most 12 lines, each beginning "xlog: ". `ending` says how the program ended; empty when it exited with 0.
std::string summary_text(const Report& report, const std::string& ending, uint64_t wall_ns, const std::string& where);

// What is live at the end of what was read: for a report whose rows end at a moment.
std::string live_text(const Report& report, const ReportStyle& style, const std::string& moment);

// What memory can be told apart by, beside the dimensions of the analysis.
enum class Split : uint8_t { stack, thread, stream, kind, tag, query, process, device, library, module };
std::optional<Split> parse_split(const std::string& name);
std::string split_text(const Report& report, const ReportStyle& style, Split split);
std::string split_json(const Report& report, Split split);

std::string whatis_text(const WhatisAnswer& answer, const WhatisQuery& query, bool all_frames);
std::string whatis_json(const WhatisAnswer& answer, const WhatisQuery& query);

// More GPUs than this are told as one, their sum.
inline constexpr size_t kMostGpusTold = 8;
// What is told one by one: `sum` is filled in where it stands for the GPUs.
std::vector<const GpuReport*> told_gpus(const Report& report, GpuReport& sum);

// What is to be said of what was live when the logs ended: "never freed"; "still live" where it is a running process's.
std::string left_text(const Report& report);

// The sentence that the report begins with.
std::string verdict(const Report& report);

}  // namespace xlog::tools
