#include "tools/report/sections/section_json.h"

#include "tools/report/json_parts.h"
#include "tools/report/safe_text.h"
#include "tools/report/sections/sections.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

using nlohmann::json;

namespace {

const char* unit_name(Unit unit) {
  switch (unit) {
    case Unit::bytes:
      return "bytes";
    case Unit::count:
      return "count";
    case Unit::nanoseconds:
      return "nanoseconds";
    case Unit::share:
      return "share";
    case Unit::text:
      return "text";
  }
  return "";
}

// A share is a part of one; a number that is not known is null.
json cell_json(const Column& column, const Cell& cell) {
  if (column.unit == Unit::text) {
    return cell.text;
  }
  if (!cell.text.empty()) {
    return nullptr;
  }
  return column.unit == Unit::share ? json(static_cast<double>(cell.number) / 1e6) : json(cell.number);
}

json row_json(const Report& report, const Section& section, const Row& row) {
  json out = {{"cells", json::array()}};
  for (size_t i = 0; i < section.columns.size(); ++i) {
    out["cells"].push_back(cell_json(section.columns[i], row.cells[i]));
  }
  if (row.place != kNoPlace) {
    out["stack"] = stack_json(report, row.place, false);
  }
  return out;
}

}  // namespace

json sections_json(const Report& report, const ReportStyle& style) {
  Sections sections;
  make_sections(report, style, sections);
  json all = json::array();
  for (const Section& each : sections.list) {
    json out = {{"key", each.key}, {"title", each.title}, {"trouble", each.is_trouble}, {"remarks", each.remarks}};
    out["gpu"] = each.gpu != nullptr ? json(each.gpu->key) : json();
    out["next"] = !each.next.empty() ? json(each.next) : json();
    out["columns"] = json::array();
    for (const Column& column : each.columns) {
      out["columns"].push_back({{"key", column.key}, {"unit", unit_name(column.unit)}});
    }
    out["rows"] = json::array();
    for (const Row& row : each.rows) {
      out["rows"].push_back(row_json(report, each, row));
    }
    all.push_back(std::move(out));
  }
  return all;
}

json page_sections_json(const Report& report, const ReportStyle& style) {
  Sections sections;
  make_sections(report, style, sections);
  json all = json::array();
  for (const Section& each : sections.list) {
    json out = {{"title", terminal_line(each.title)}, {"trouble", each.is_trouble}, {"next", terminal_line(each.next)}};
    out["remarks"] = json::array();
    for (const std::string& remark : each.remarks) {
      out["remarks"].push_back(terminal_line(remark));
    }
    out["rows"] = json::array();
    for (const Row& row : each.rows) {
      json cells = json::array();
      for (size_t i = 0; i < each.columns.size(); ++i) {
        cells.push_back(terminal_line(cell_text(each.columns[i], row.cells[i])));
      }
      if (row.place != kNoPlace) {
        cells.push_back(terminal_line(holder_name(report, row.place)));
      }
      out["rows"].push_back(std::move(cells));
    }
    all.push_back(std::move(out));
  }
  return all;
}

}  // namespace xlog::tools
