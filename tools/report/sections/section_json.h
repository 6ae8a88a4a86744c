// The sections of a report for machines: $defs/section of report.schema.json. A new section or column needs no line there.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/report/report.h"

namespace xlog::tools {

nlohmann::json sections_json(const Report& report, const ReportStyle& style);
// For the page: cells as people read them, and what holds a row's memory behind them; safe for a terminal, as all text of the page.
nlohmann::json page_sections_json(const Report& report, const ReportStyle& style);

}  // namespace xlog::tools
