// The report as one page for a browser: memory over time, the live set as a flame graph, tables. Needs no network.
#pragma once

#include <string>

#include "tools/report/report.h"

namespace xlog::tools {

// Moments at which who held the memory is in the page: a multiple of 8 (AnalysisOptions::snapshots).
inline constexpr size_t kHtmlSnapshots = 240;

// False, with the reason, where this program was built without the page.
bool report_html(const Report& report, const ReportStyle& style, std::string& page, std::string& problem);

}  // namespace xlog::tools
