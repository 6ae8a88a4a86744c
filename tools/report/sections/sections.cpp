#include "tools/report/sections/sections.h"

#include <algorithm>

#include "tools/report/format.h"
#include "tools/report/sections/section_maker.h"

namespace xlog::tools {

namespace {
constexpr uint64_t kMillion = 1'000'000;
}

Cell share_of(uint64_t part, uint64_t whole) {
  double share = whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  return {static_cast<uint64_t>(std::min(share, 1.0) * kMillion)};
}

std::string cell_text(const Column& column, const Cell& cell) {
  if (!cell.text.empty()) {
    return cell.text;
  }
  std::string noun = column.noun[0] != '\0' ? std::string(" ") + column.noun : "";
  switch (column.unit) {
    case Unit::bytes:
      return size_text(cell.number) + noun;
    case Unit::count:
      return noun.empty() ? count_text(cell.number) : plural(cell.number, column.noun);
    case Unit::nanoseconds:
      return time_text(cell.number) + noun;
    case Unit::share:
      return share_text(cell.number, kMillion) + noun;
    case Unit::text:
      break;
  }
  return "";
}

void SectionMaker::add_holders(Section& section, const std::vector<Holder>& holders, uint64_t whole) {
  section.columns = {{"bytes", Unit::bytes}, {"share", Unit::share}, {"blocks", Unit::count, "block"}};
  uint64_t rest = whole;
  for (const Holder& each : holders) {
    section.rows.push_back({.cells = {{each.bytes}, share_of(each.bytes, whole), {each.blocks}}, .place = each.place});
    rest -= std::min(rest, each.bytes);
  }
  if (rest != 0 && !holders.empty()) {
    section.remarks.push_back(size_text(rest) + "  " + share_text(rest, whole) + "  held by others (--top, --full)");
  }
}

void SectionMaker::add_holes(Section& section, const Holes& holes) {
  if (holes.known && holes.count != 0) {
    section.remarks.push_back("addresses that blocks have left: " + size_text(holes.bytes) + " in " + plural(holes.count, "hole") +
                              ", the largest " + size_text(holes.largest));
  }
}

void make_sections(const Report& report, const ReportStyle& style, Sections& out) {
  SectionMaker maker{.report = report, .style = style, .gpus = told_gpus(report, out.sum), .log_name = name_of(report.logs)};
#define XLOG_SECTION(name) make_##name(maker);
#include "tools/report/sections/sections.def"
#undef XLOG_SECTION
  out.list = std::move(maker.made);
}

}  // namespace xlog::tools
