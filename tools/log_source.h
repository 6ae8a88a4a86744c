// One log being read: its current row, and the memory of what was read given back on the way.
#pragma once

#include "runtime/record/row_reader.h"
#include "tools/log_set.h"

namespace xlog::tools {

class LogSource {
 public:
  explicit LogSource(const ProcessLog& log) : file_(log.csv), reader_(file_.text()) {}

  bool advance() {
    alive_ = reader_.next(event_);
    if ((++rows_ & 0xffff) == 0) {
      file_.forget_before(reader_.offset());
    }
    return alive_;
  }
  [[nodiscard]] bool alive() const { return alive_; }
  [[nodiscard]] const Event& event() const { return event_; }
  [[nodiscard]] const MappedFile& file() const { return file_; }
  [[nodiscard]] const RowReader& reader() const { return reader_; }

 private:
  MappedFile file_;
  RowReader reader_;
  Event event_;
  uint64_t rows_ = 0;
  bool alive_ = false;
};

}  // namespace xlog::tools
