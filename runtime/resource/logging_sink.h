// Where the log adaptor's records go. A sink must be thread-safe, and must neither fail hard nor wait for long when it is
// full or its file is gone: it says so, and the record counts as dropped.
#pragma once

#include "runtime/record/recorder.h"
#include "runtime/resource/status.h"

namespace xlog {

enum class SinkError : uint8_t { none, refused, io };

// One record: what a row of the log holds, and the status it was made from. Views are good for the call only.
struct LogEntry {
  Event event;
  Status status;
  bool has_stream = false;
};

class LoggingSink {
 public:
  LoggingSink(const LoggingSink&) = delete;
  LoggingSink& operator=(const LoggingSink&) = delete;

  // After the call that it tells of.
  virtual SinkError emit(LogEntry& entry) noexcept = 0;

  // For a sink that keeps the order of addresses: a place in the order, claimed before a free is made; `complete` ends
  // it, `as_held` when the call did what was expected. `text` keeps the row meanwhile.
  virtual void hold(Event&, HeldRow&, RowText&) noexcept {}
  virtual SinkError complete(LogEntry& entry, const HeldRow&, RowText*, bool) noexcept { return emit(entry); }
  // Which time records are wanted, from 1: a block has an end in the log when its beginning is of the same period. 0: none are.
  [[nodiscard]] virtual uint32_t period() const noexcept { return 1; }
  // The stack of the caller as a number; kNone where stacks are not kept.
  virtual uint64_t stack_id(const void*) noexcept { return kNone; }
  // Whether `time` and `elapsed_ns` are looked at: reading the clock is most of what a record costs.
  [[nodiscard]] virtual bool wants_times() const noexcept { return true; }

 protected:
  constexpr LoggingSink() = default;
  ~LoggingSink() = default;
};

// Accepts and drops.
class NullSink final : public LoggingSink {
 public:
  constexpr NullSink() = default;
  SinkError emit(LogEntry&) noexcept override { return SinkError::none; }
  [[nodiscard]] bool wants_times() const noexcept override { return false; }
};

// The files of a log (record/recorder.h). Rows that could not be written are counted there and in the file itself.
class RecorderSink final : public LoggingSink {
 public:
  explicit constexpr RecorderSink(Recorder& recorder) noexcept : recorder_(recorder) {}
  SinkError emit(LogEntry& entry) noexcept override {
    recorder_.record(entry.event);
    return SinkError::none;
  }
  void hold(Event& event, HeldRow& held, RowText& text) noexcept override { recorder_.hold(event, held, text); }
  SinkError complete(LogEntry& entry, const HeldRow& held, RowText* text, bool as_held) noexcept override {
    recorder_.complete(entry.event, held, text, as_held);
    return SinkError::none;
  }
  uint64_t stack_id(const void* caller) noexcept override { return recorder_.stack_id(caller); }
  [[nodiscard]] uint32_t period() const noexcept override { return recorder_.period(); }

 private:
  Recorder& recorder_;
};

}  // namespace xlog
