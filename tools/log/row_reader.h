// Reads NAME.csv back: its rows in file order, by column name. Any order of columns, extra columns, empty lines, a cut last
// row and lines of other things are expected. RMM's logs read as ours (row_format.h).
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tools/log/read_ahead.h"

namespace xlog {

class RowReader {
 public:
  struct Settings {
    ReadAhead* helpers = nullptr;  // must outlive the reader
    size_t stretch = 256 << 10;    // bytes that are parsed at once
    size_t stretches_ahead = 4;    // with helpers
    uint64_t device = 0;           // of all rows, in a file without such a column
  };
  explicit RowReader(std::string_view text) : RowReader(text, Settings()) {}
  RowReader(std::string_view text, const Settings& settings);
  ~RowReader();
  RowReader(const RowReader&) = delete;
  RowReader& operator=(const RowReader&) = delete;

  // False when the first line is not a header with the columns that a log has; `error` says what is wrong.
  [[nodiscard]] bool good() const { return format_.good(); }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] const RowFormat& format() const { return format_; }

  // Next whole row; nullptr at the end. It and its views live until the next call.
  Event* next();
  bool next(Event& out) {
    const Event* row = next();
    if (row != nullptr) {
      out = *row;
    }
    return row != nullptr;
  }
  // The row `ahead` behind the one that next() gives; nullptr where it is not read yet.
  [[nodiscard]] const Event* peek(size_t ahead) const {
    return current_ != nullptr && ahead < current_->batch.rows().size() - row_ ? &current_->batch.rows()[row_ + ahead] : nullptr;
  }
  // Bytes of the file that no row to come stands in.
  [[nodiscard]] size_t offset() const { return begun_; }
  [[nodiscard]] uint64_t line() const { return line_; }  // of the row that next() gave, from 1

  [[nodiscard]] uint64_t empty_lines() const { return empty_lines_; }
  // Places between rows that were claimed and never filled, or not to their end: the process died in the call. Neighbours
  // count as one.
  [[nodiscard]] uint64_t unfinished_rows() const { return unfinished_rows_; }
  [[nodiscard]] uint64_t foreign_rows() const { return foreign_rows_; }  // not rows of this log
  // Line numbers of the first of them.
  [[nodiscard]] const std::vector<uint64_t>& foreign_lines() const { return foreign_lines_; }
  [[nodiscard]] bool cut() const { return cut_; }  // the last row is not whole

 private:
  static constexpr size_t kForeignLines = 10;
  bool next_batch();
  bool take_stretch(ReadJob& job);
  void pass(const RowGap& gap);

  std::string_view text_;
  Settings settings_;
  RowFormat format_;
  std::string error_;
  std::vector<std::unique_ptr<ReadJob>> jobs_;  // a ring: those that are being parsed, in file order
  size_t first_ = 0;                            // of them
  size_t ahead_ = 0;                            // how many
  std::unique_ptr<ReadJob> current_;
  size_t row_ = 0;     // of the current batch, next
  size_t gap_at_ = 0;  // of the current batch, next
  size_t taken_ = 0;   // offset: what is behind is in no batch
  size_t begun_ = 0;   // offset of the current batch
  uint64_t first_line_ = 1;
  uint64_t line_ = 0;
  uint64_t last_time_ = 0;
  uint64_t midnights_ns_ = 0;
  uint64_t empty_lines_ = 0;
  uint64_t unfinished_rows_ = 0;
  uint64_t gap_ = 0;              // empty lines since the last row
  bool has_pieces_ = false;       // of a row, in the gap
  bool after_retracted_ = false;  // the last row is shorter than its place
  uint64_t foreign_rows_ = 0;
  std::vector<uint64_t> foreign_lines_;
  bool cut_ = false;
};

}  // namespace xlog
