// Sinks of the log adaptor for C++ programs: in memory, the last N in memory, a CSV file.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/resource/logging_sink.h"

namespace xlog {

enum class LogAction : uint8_t { allocate, deallocate, reap_pending, other };
std::string_view log_action_name(LogAction action) noexcept;

struct LogResult {
  Error kind = Error::none;
  std::string message;  // at most 256 bytes and an ellipsis
  [[nodiscard]] bool ok() const noexcept { return kind == Error::none; }
};

// A record that owns what it says. Absent is what the call did not have; an allocation that failed has the bytes that
// were asked for.
struct LogRecord {
  LogAction action = LogAction::other;
  int device_ordinal = -1;
  std::optional<uint32_t> stream_id;
  std::optional<uint64_t> ptr;
  std::optional<uint64_t> bytes;
  std::optional<std::string> tag;
  std::optional<uint64_t> generation;
  uint32_t thread_id = 0;        // the kernel's
  uint64_t order_counter = 0;    // process-wide, in the order of emission, from 1
  uint64_t timestamp_nanos = 0;  // since the epoch
  LogResult result;

  static LogRecord from(const LogEntry& entry);
};

// Every record, or the last `capacity` ones.
class InMemorySink final : public LoggingSink {
 public:
  explicit InMemorySink(size_t capacity = SIZE_MAX) : capacity_(capacity) {}
  SinkError emit(LogEntry& entry) noexcept override;

  [[nodiscard]] std::vector<LogRecord> snapshot() const;  // oldest first
  void clear();
  [[nodiscard]] size_t len() const;
  [[nodiscard]] bool is_empty() const { return len() == 0; }
  // Records that made room for later ones.
  [[nodiscard]] uint64_t overwritten() const;

 private:
  const size_t capacity_;
  mutable std::mutex lock_;
  std::vector<LogRecord> records_;
  size_t oldest_ = 0;
  uint64_t overwritten_ = 0;
};

// Keeps the last `capacity` records.
class RingBufferSink final : public LoggingSink {
 public:
  explicit RingBufferSink(size_t capacity) : memory_(capacity == 0 ? 1 : capacity) {}
  SinkError emit(LogEntry& entry) noexcept override { return memory_.emit(entry); }
  [[nodiscard]] std::vector<LogRecord> snapshot() const { return memory_.snapshot(); }
  [[nodiscard]] uint64_t overwritten() const { return memory_.overwritten(); }

 private:
  InMemorySink memory_;
};

// The files of a log (NAME.csv, NAME.stacks.csv), as the shim writes them: `path` and its placeholders are those of
// XLOG_LOG, and no existing file is touched. A log that cannot be written says so once and counts its records as dropped.
class CsvFileSink final : public LoggingSink {
 public:
  explicit CsvFileSink(std::string_view path, unsigned backtrace_depth = 0) noexcept;
  // Cuts the file to its length.
  ~CsvFileSink();

  SinkError emit(LogEntry& entry) noexcept override;
  void hold(Event& event, HeldRow& held, RowText& text) noexcept override;
  SinkError complete(LogEntry& entry, const HeldRow& held, RowText* text, bool as_held) noexcept override;
  uint64_t stack_id(const void* caller) noexcept override;

 private:
  struct Files;
  std::unique_ptr<Files> files_;
};

}  // namespace xlog
