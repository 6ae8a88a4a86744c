// A stretch of a log, parsed: what a thread can do by itself, without knowing what stands before.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/log/row_format.h"

namespace xlog {

// What stands between rows.
struct RowGap {
  uint32_t before = 0;        // place in rows() of the row behind it
  uint32_t empty_lines = 0;   // or, where 0, a line that is no row:
  bool beside_empty = false;  // an empty line follows it
  uint64_t line = 0;          // in the batch, from 0
};

struct RowBatch {
  std::vector<RowGap> gaps;
  uint64_t lines = 0;

  [[nodiscard]] std::span<Event> rows() { return {rows_.data(), count_}; }
  [[nodiscard]] uint64_t line_of(size_t row) const { return row_lines_[row]; }  // in the batch, from 0

  // Views in rows() go into `text` and into this object. `text` ends behind a newline. `rest`: bytes that may be read behind it.
  void parse(const RowFormat& format, std::string_view text, size_t rest);

 private:
  const char* parse_line(const RowFormat& format, const char* at, const char* end, const char* readable);
  void take_slowly(const RowFormat& format, std::string_view line, const char* behind, const char* readable);
  void add_gap(std::string_view line, const char* behind, const char* readable);

  Event& fresh_row();

  std::vector<Event> rows_;  // so many as a stretch has ever had: to make them anew takes as long as to read them
  std::vector<uint64_t> row_lines_;
  size_t count_ = 0;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;
  CsvLine line_;
};

}  // namespace xlog
