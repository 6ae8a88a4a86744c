// One log being read: its current row, and the memory of what was read given back on the way.
#pragma once

#include "tools/log/log_set.h"
#include "tools/log/mapped_file.h"
#include "tools/log/row_reader.h"

namespace xlog::tools {

class LogSource {
 public:
  explicit LogSource(const ProcessLog& log, RowReader::Settings settings = {})
      : file_(log.csv), reader_(file_.text(), with_device(settings, log)) {}

  bool advance() {
    event_ = reader_.next();
    if ((++rows_ & 0xffff) == 0) {
      file_.forget_before(reader_.offset());
    }
    return event_ != nullptr;
  }
  [[nodiscard]] bool alive() const { return event_ != nullptr; }
  [[nodiscard]] const Event& event() const { return *event_; }
  [[nodiscard]] const MappedFile& file() const { return file_; }
  [[nodiscard]] const RowReader& reader() const { return reader_; }
  // Why it cannot be read; empty when it can.
  [[nodiscard]] std::string trouble(const std::string& path) const {
    return !file_.error().empty() ? file_.error() : reader_.good() ? "" : path + ": " + reader_.error();
  }

 private:
  static RowReader::Settings with_device(RowReader::Settings settings, const ProcessLog& log) {
    settings.device = log.device;
    return settings;
  }
  MappedFile file_;
  RowReader reader_;
  const Event* event_ = nullptr;
  uint64_t rows_ = 0;
};

}  // namespace xlog::tools
