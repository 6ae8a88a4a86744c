// The report for people: the short one, which fits on a screen, and the full one.
#include <algorithm>
#include <map>

#include "tools/report/brief_name.h"
#include "tools/report/header.h"
#include "tools/report/lines.h"
#include "tools/report/notes.h"
#include "tools/report/report.h"
#include "tools/report/safe_text.h"
#include "tools/report/sections/sections.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

namespace {

// What is written comes from logs: each text is made safe for a terminal before it is put into lines.

// The cells of all rows, each column as wide as its widest cell.
std::vector<std::string> table_of(const Section& section) {
  std::vector<size_t> widths(section.columns.size());
  for (size_t column = 0; column < widths.size(); ++column) {
    for (const Row& row : section.rows) {
      widths[column] = std::max(widths[column], columns_of(terminal_line(cell_text(section.columns[column], row.cells[column]))));
    }
  }
  std::vector<std::string> lines;
  for (const Row& row : section.rows) {
    std::string line;
    for (size_t column = 0; column < widths.size(); ++column) {
      std::string cell = terminal_line(cell_text(section.columns[column], row.cells[column]));
      std::string space(widths[column] - columns_of(cell), ' ');
      bool is_text = section.columns[column].unit == Unit::text;
      line += "  " + (is_text ? cell + (column + 1 < widths.size() ? space : "") : space + cell);
    }
    lines.push_back(line);
  }
  return lines;
}

// What the rows are about: brief names, but for those that would be the same.
std::vector<std::string> row_names(const Report& report, const Section& section) {
  std::vector<std::string> whole;
  std::map<std::string, size_t> count;
  for (const Row& row : section.rows) {
    whole.push_back(row.place != kNoPlace ? terminal_line(holder_name(report, row.place)) : "");
    ++count[brief_name(whole.back())];
  }
  for (std::string& each : whole) {
    std::string brief = brief_name(each);
    each = count[brief] == 1 ? brief : each;
  }
  return whole;
}

// A section of the short report, with at most `rows` of its rows.
std::vector<std::string> short_section(const Report& report, const Section& section, size_t rows, const Terminal& terminal) {
  std::vector<std::string> lines = wrapped(terminal_line(section.title), terminal.width, "  ");
  for (std::string& each : lines) {
    each = section.is_trouble ? red(each, terminal) : bold(each, terminal);
  }
  constexpr size_t kLeastName = 8;
  std::vector<std::string> table = table_of(section);
  std::vector<std::string> names = row_names(report, section);
  for (size_t i = 0; i < std::min(rows, table.size()); ++i) {
    uint32_t place = section.rows[i].place;
    size_t used = columns_of(table[i]) + 2;
    bool has_room = place != kNoPlace && used + kLeastName <= terminal.width;
    lines.push_back(shortened(table[i], terminal.width) +
                    (has_room ? "  " + shortened_in_the_middle(names[i], terminal.width - used) : ""));
  }
  if (!section.next.empty()) {
    lines.push_back(faint(shortened("  try: " + terminal_line(section.next), terminal.width), terminal));
  }
  return lines;
}

// A section with all of its rows, and the stacks that they are about.
std::string full_section(const Report& report, const Section& section, const ReportStyle& style) {
  std::string out = terminal_line(section.title) + '\n';
  std::vector<std::string> table = table_of(section);
  for (size_t i = 0; i < table.size(); ++i) {
    uint32_t place = section.rows[i].place;
    out += table[i] + '\n';
    if (place != kNoPlace) {
      out += terminal_text(stack_text(report.stack(place), report.log_of(place), style.all_frames, style.frames, "      "));
    }
  }
  for (const std::string& each : section.remarks) {
    out += "  " + terminal_line(each) + '\n';
  }
  return out + (section.next.empty() ? "" : "  try: " + terminal_line(section.next) + '\n');
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& each : lines) {
    text += each + '\n';
  }
  return text;
}

}  // namespace

std::string short_report_text(const Report& report, const ReportStyle& style, const Terminal& terminal) {
  constexpr size_t kLines = 40;
  constexpr size_t kMostNotes = 4;
  std::vector<std::string> top;
  for (const std::string& each : header_of(report)) {
    top.push_back(shortened(terminal_line(each), terminal.width));
  }
  top.emplace_back();
  for (const std::string& each : wrapped(terminal_line(verdict(report)), terminal.width, "")) {
    top.push_back(bold(each, terminal));
  }
  std::vector<std::string> notes = notes_of(report);
  for (size_t i = 0; i < std::min(notes.size(), kMostNotes); ++i) {
    top.push_back(shortened("note: " + terminal_line(notes[i]), terminal.width));
  }
  Sections sections;
  make_sections(report, style, sections);
  std::vector<const Section*> shown;
  for (const Section& each : sections.list) {
    if (!each.is_detail) {
      shown.push_back(&each);
    }
  }
  // Fewer rows of each section until all of them fit, and then fewer sections.
  std::vector<std::string> body;
  for (size_t rows = std::min<size_t>(style.top, 3);;) {
    body.clear();
    for (const Section* each : shown) {
      body.emplace_back();
      for (std::string& line : short_section(report, *each, rows, terminal)) {
        body.push_back(std::move(line));
      }
    }
    if (shown.empty() || top.size() + body.size() + 2 <= kLines) {
      break;
    }
    if (rows > 1) {
      --rows;
    } else {
      shown.pop_back();
    }
  }
  std::string more = shown.size() == sections.list.size()
                         ? ""
                         : "\n" + faint("All of it: xlog report --full " + terminal_line(name_of(report.logs)), terminal) + '\n';
  return joined(top) + joined(body) + more;
}

std::string report_text(const Report& report, const ReportStyle& style) {
  std::string out = terminal_line(verdict(report)) + '\n';
  for (const std::string& each : header_of(report)) {
    out += terminal_line(each) + '\n';
  }
  for (const std::string& each : notes_of(report)) {
    out += "note: " + terminal_line(each) + '\n';
  }
  Sections sections;
  make_sections(report, style, sections);
  for (const Section& section : sections.list) {
    out += '\n';
    out += full_section(report, section, style);
  }
  return out;
}

// What is live at a moment: GPUs one by one, or where they are too many, their sum.
std::string live_text(const Report& report, const ReportStyle& style, const std::string& moment) {
  std::string out;
  Sections sections;
  make_live_sections(report, style, moment, sections);
  for (const Section& section : sections.list) {
    out += full_section(report, section, style);
  }
  return report.gpus.empty() ? "Nothing was live " + moment + ".\n" : out;
}

}  // namespace xlog::tools
