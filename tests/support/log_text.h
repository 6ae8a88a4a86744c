// Logs for tests, written row by row.
#pragma once

#include <string>

#include "runtime/record/row_writer.h"
#include "support/process.h"
#include "tools/analysis/analysis.h"

namespace xlog::test {

class LogText {
 public:
  LogText() {
    Text<512> header;
    put_header(header);
    text_ = header.view();
  }

  // A row; `seq` and `time` (1 us apart) count up where they are not given.
  LogText& put(Event event) {
    event.seq = event.seq == kNone ? ++seq_ : event.seq;
    seq_ = event.seq;
    event.time = event.time == 0 ? 1'000'000'000 + event.seq * 1000 : event.time;
    Text<4000> row;
    put_row_head(row, event);
    row.decimal(event.seq);
    put_row_tail(row, event);
    text_ += row.view();
    return *this;
  }

  struct Block {
    uint64_t ptr = 0;
    uint64_t bytes = 512;
    uint64_t thread = 7;
    uint64_t time = 0;
    uint64_t stack = kNone;
    uint64_t stream = kNone;
    uint64_t device = 0;
    uint64_t generation = kNone;
    std::string_view kind = "plain";
    std::string_view api = "cuMemAlloc_v2";
    std::string_view result = "ok";
    std::string_view message = "";
    std::string_view tag = "";
  };
  LogText& allocate(const Block& block) { return put(event_of(action::allocate, block)); }
  LogText& free(const Block& block) {
    Event event = event_of(action::deallocate, block);
    event.api = block.api == "cuMemAlloc_v2" ? "cuMemFree_v2" : block.api;
    return put(event);
  }
  LogText& mark(std::string_view action) {
    Event event;
    event.action = action;
    event.result = "ok";
    return put(event);
  }
  LogText& raw(const std::string& text) {
    text_ += text;
    return *this;
  }

  [[nodiscard]] const std::string& text() const { return text_; }
  // As NAME.csv in `folder`, with its stacks: of stack 1 the frames f1, main; of 2 f2, main; and so on to 9, in module `app`.
  void write(const TempFolder& folder, const std::string& name = "x") const {
    spit(folder / (name + ".csv"), text_);
    std::string stacks = std::string(kStackColumns) + '\n';
    for (int i = 1; i <= 9; ++i) {
      std::string n = std::to_string(i);
      stacks += n + ",0,/opt/app,abcd,0x" + n + "00,f" + n + ",app.cpp," + n + "\n" + n + ",1,/opt/app,abcd,0x1,main,app.cpp,99\n";
    }
    spit(folder / (name + ".stacks.csv"), stacks);
  }
  [[nodiscard]] tools::Report report(const tools::AnalysisOptions& options = {.resolve = false}) const {
    TempFolder folder;
    write(folder);
    std::vector<std::string> problems;
    return tools::analyse(tools::find_logs({folder / "x.csv"}, problems), options);
  }

 private:
  static Event event_of(std::string_view action, const Block& block) {
    Event event;
    event.thread = block.thread;
    event.time = block.time;
    event.action = action;
    event.ptr = block.result == "ok" ? block.ptr : kNone;
    event.bytes = block.bytes;
    event.stream = block.stream;
    event.device = block.device;
    event.generation = block.generation;
    event.kind = block.kind;
    event.api = block.api;
    event.result = block.result;
    event.message = block.message;
    event.tag = block.tag;
    event.stack_id = block.stack;
    return event;
  }

  std::string text_;
  uint64_t seq_ = 0;
};

}  // namespace xlog::test
