// All sections of a report, in the order of a page.
#pragma once

#include <vector>

#include "tools/report/report.h"
#include "tools/report/sections/section.h"

namespace xlog::tools {

// What the sections point into, where many GPUs are described by their sum.
struct Sections {
  GpuReport sum;
  std::vector<Section> list;
};

void make_sections(const Report& report, const ReportStyle& style, Sections& out);

// What is live at the end of what was read, for a report whose rows end at a moment.
void make_live_sections(const Report& report, const ReportStyle& style, const std::string& moment, Sections& out);

// A cell as people read it: "2.37 GiB", "38 blocks", "80.8 %".
std::string cell_text(const Column& column, const Cell& cell);

}  // namespace xlog::tools
