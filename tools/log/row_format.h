// What the columns of a file are, from its first line: our own log, or one of those that RMM has written (its
// logging_resource_adaptor, 0.14 and since; the C library before that).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/record/event.h"
#include "tools/log/csv_line.h"

namespace xlog {

enum class Dialect : uint8_t {
  xlog,
  rmm,         // [Thread,]Time,Action,Pointer,Size,Stream
  rmm_events,  // Event Type,Device ID,Address,Stream,Size (bytes),...,Start,End,Elapsed,Location
};

class RowFormat {
 public:
  // `device` of all rows, for a file that has no such column.
  explicit RowFormat(std::string_view header, uint64_t device = 0);

  // False when the line is not a header with the columns that a log has; `error` says what is wrong.
  [[nodiscard]] bool good() const { return error_.empty(); }
  [[nodiscard]] const std::string& error() const { return error_; }
  [[nodiscard]] Dialect dialect() const { return dialect_; }
  [[nodiscard]] size_t columns() const { return columns_.size(); }
  // Times are times of day, and begin anew at midnight.
  [[nodiscard]] bool has_time_of_day() const { return dialect_ == Dialect::rmm; }

  // The row's fields; false when it is no row. `count` must be columns().
  bool fill(const std::string_view* fields, size_t count, Event& out) const;

 private:
  // Of RMM's files: where a field that fill() looks for stands; -1: nowhere.
  struct RmmPlaces {
    int thread = -1;
    int time = -1;
    int action = -1;
    int pointer = -1;
    int size = -1;
    int stream = -1;
    int device = -1;
    int elapsed = -1;
    int location = -1;
  };
  void read_own(const CsvLine& header);
  bool read_rmm(const CsvLine& header);
  bool fill_own(const std::string_view* fields, size_t count, Event& out) const;
  bool fill_rmm(const std::string_view* fields, Event& out) const;

  Dialect dialect_ = Dialect::xlog;
  std::vector<int8_t> columns_;  // by field: the Column, or -1
  bool in_order_ = false;        // field and Column are the same
  RmmPlaces rmm_;
  uint64_t device_ = 0;
  std::string error_;
};

}  // namespace xlog
