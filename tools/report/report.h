// A Report as text for people, as JSON for machines, and as the few lines that `xlog run` ends with.
#pragma once

#include <string>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

struct ReportStyle {
  bool all_frames = false;
  size_t top = 5;     // stacks a section
  size_t frames = 3;  // shown of each
};

std::string report_text(const Report& report, const ReportStyle& style);
std::string report_json(const Report& report);
// At most 12 lines, each beginning "xlog: ". `ending` says how the program ended; empty when it exited with 0.
std::string summary_text(const Report& report, const std::string& ending, uint64_t wall_ns, const std::string& where);

// The frames of a stack, a line each; nullptr: there is none.
std::string stack_text(const Stack* stack, const ProcessLog& log, const ReportStyle& style, const std::string& indent);
// What holds a stack's memory, in one line: the cache it belongs to, or its first visible frame.
std::string holder_name(const Report& report, const StackKey& where);
// The sentence that the report begins with.
std::string verdict(const Report& report);

}  // namespace xlog::tools
