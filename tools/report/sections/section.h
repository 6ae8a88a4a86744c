// What a report says, as data. A section is made once, from the analysis (sections.def lists them); the text, the JSON and the page
// render all sections in the same way.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

enum class Unit : uint8_t {
  bytes,
  count,
  nanoseconds,
  share,  // parts of a million
  text,
};

struct Column {
  const char* key;  // in the JSON
  Unit unit;
  const char* noun = "";  // what the number counts, for people: "block" gives "1 block" and "2 blocks"
};

struct Cell {
  uint64_t number = 0;
  std::string text = {};  // for Unit::text; in place of a number that is not known
};

inline constexpr uint32_t kNoPlace = UINT32_MAX;

struct Row {
  std::vector<Cell> cells;    // one for each column
  uint32_t place = kNoPlace;  // the stack that the row is about, in Report::places
  std::string note = {};      // said after the cells
};

struct Section {
  const char* key = "";
  const GpuReport* gpu = nullptr;  // nullptr: of the whole run
  std::string title = {};          // the conclusion, as a sentence without its full stop
  std::vector<Column> columns = {};
  std::vector<Row> rows = {};  // the most important first
  std::vector<std::string> remarks = {};
  std::string next = {};    // the command or the option to try next
  bool is_detail = false;   // left out of the short report
  bool is_trouble = false;  // the program, or its memory, went wrong
};

}  // namespace xlog::tools
