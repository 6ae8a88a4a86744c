// Reads NAME.csv back: maps the file, splits rows, gives fields by column name. Any order of columns, extra columns,
// empty lines, a cut last row and foreign rows are expected. For tools and tests; not used by the preloaded library.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/record/event.h"

namespace xlog {

// The file's bytes; empty when it cannot be read (`error` says why).
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  [[nodiscard]] std::string_view text() const { return {data_, size_}; }
  [[nodiscard]] const std::string& error() const { return error_; }
  // Tells the kernel that the bytes before `offset` will not be read again.
  void forget_before(size_t offset);

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
  size_t forgotten_ = 0;
  std::string error_;
};

// One line of RFC 4180 split into fields; quoted fields are unquoted into `scratch`.
class CsvLine {
 public:
  static constexpr size_t kMaxFields = 64;
  // False when a quoted field is not closed or there are too many fields.
  bool split(std::string_view line);
  [[nodiscard]] size_t size() const { return count_; }
  [[nodiscard]] std::string_view operator[](size_t i) const { return i < count_ ? fields_[i] : std::string_view(); }

 private:
  std::array<std::string_view, kMaxFields> fields_;
  size_t count_ = 0;
  std::string scratch_;
};

// The text for a size that has no number is std::nullopt; so is anything that is not a number.
std::optional<uint64_t> parse_decimal(std::string_view text);
std::optional<uint64_t> parse_hex(std::string_view text);

class RowReader {
 public:
  explicit RowReader(std::string_view text);

  // False when the first line is not a header with the columns that a log has; `error` says what is wrong.
  [[nodiscard]] bool good() const { return error_.empty(); }
  [[nodiscard]] const std::string& error() const { return error_; }

  // Next whole row; false at the end. The views in `out` live until the next call.
  bool next(Event& out);
  [[nodiscard]] size_t offset() const { return at_; }

  [[nodiscard]] uint64_t empty_lines() const { return empty_lines_; }
  // Places between rows that were claimed and never filled, or not to their end: the process died in the call. Neighbours
  // count as one.
  [[nodiscard]] uint64_t unfinished_rows() const { return unfinished_rows_; }
  [[nodiscard]] uint64_t foreign_rows() const { return foreign_rows_; }  // not rows of this log
  [[nodiscard]] bool cut() const { return cut_; }                        // the last row is not whole

 private:
  bool read_header();
  bool fill(Event& out);
  [[nodiscard]] std::string_view field(Column column) const {
    int at = position_[static_cast<size_t>(column)];
    return at < 0 ? std::string_view() : line_[static_cast<size_t>(at)];
  }

  std::string_view text_;
  size_t at_ = 0;
  size_t columns_ = 0;
  std::array<int, kColumnCount> position_{};
  CsvLine line_;
  std::string error_;
  uint64_t empty_lines_ = 0;
  uint64_t unfinished_rows_ = 0;
  uint64_t gap_ = 0;              // empty lines since the last row
  bool has_pieces_ = false;       // of a row, in the gap
  bool after_retracted_ = false;  // the last row is shorter than its place
  uint64_t foreign_rows_ = 0;
  bool cut_ = false;
};

}  // namespace xlog
