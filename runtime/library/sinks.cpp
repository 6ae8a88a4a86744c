#include "runtime/library/sinks.h"

#include <errno.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <new>

#include "runtime/base/memory_map.h"
#include "runtime/base/thread.h"

namespace xlog {

namespace {

constinit std::atomic<uint64_t> last_order{0};

LogAction action_of(std::string_view name) noexcept {
  for (LogAction each : {LogAction::allocate, LogAction::deallocate, LogAction::reap_pending}) {
    if (name == log_action_name(each)) {
      return each;
    }
  }
  return LogAction::other;
}

}  // namespace

std::string_view log_action_name(LogAction action) noexcept {
  switch (action) {
    case LogAction::allocate:
      return action::allocate;
    case LogAction::deallocate:
      return action::deallocate;
    case LogAction::reap_pending:
      return action::reap_pending;
    case LogAction::other:
      break;
  }
  return "other";
}

LogRecord LogRecord::from(const LogEntry& entry) {
  const Event& event = entry.event;
  LogRecord record;
  record.action = action_of(event.action);
  record.device_ordinal = static_cast<int>(event.device);
  auto number = [](uint64_t value) { return value == kNone ? std::nullopt : std::optional<uint64_t>(value); };
  if (entry.has_stream) {
    record.stream_id = static_cast<uint32_t>(event.stream);
  }
  record.ptr = number(event.ptr);
  record.bytes = number(event.bytes);
  record.generation = number(event.generation);
  if (record.action != LogAction::reap_pending) {
    record.tag = event.tag.empty() ? AllocTag().text() : event.tag;
  }
  record.thread_id = xlog::thread_id();
  record.timestamp_nanos = event.time;
  record.result = {.kind = entry.status.error, .message = std::string(event.message)};
  record.order_counter = last_order.fetch_add(1, std::memory_order_relaxed) + 1;
  return record;
}

SinkError InMemorySink::emit(LogEntry& entry) noexcept {
  try {
    LogRecord record = LogRecord::from(entry);
    std::lock_guard<std::mutex> guard(lock_);
    if (records_.size() < capacity_) {
      records_.push_back(std::move(record));
    } else {
      records_[oldest_] = std::move(record);
      oldest_ = (oldest_ + 1) % capacity_;
      ++overwritten_;
    }
    return SinkError::none;
  } catch (...) {
    return SinkError::refused;  // no memory for it
  }
}

std::vector<LogRecord> InMemorySink::snapshot() const {
  std::lock_guard<std::mutex> guard(lock_);
  std::vector<LogRecord> copy;
  copy.reserve(records_.size());
  for (size_t i = 0; i < records_.size(); ++i) {
    copy.push_back(records_[(oldest_ + i) % records_.size()]);
  }
  return copy;
}

void InMemorySink::clear() {
  std::lock_guard<std::mutex> guard(lock_);
  records_.clear();
  oldest_ = 0;
}

size_t InMemorySink::len() const {
  std::lock_guard<std::mutex> guard(lock_);
  return records_.size();
}

uint64_t InMemorySink::overwritten() const {
  std::lock_guard<std::mutex> guard(lock_);
  return overwritten_;
}

// The recorder lives in pages that a fork child finds wiped, as it expects.
struct CsvFileSink::Files {
  Options options;
  char folder[1024] = {};
  Recorder* recorder = nullptr;

  ~Files() {
    if (recorder != nullptr) {
      recorder->begin_exit();
    }
  }
};

CsvFileSink::CsvFileSink(std::string_view path, unsigned backtrace_depth) noexcept : files_(new (std::nothrow) Files) {
  auto* memory = static_cast<Recorder*>(files_ != nullptr ? map_state(sizeof(Recorder)) : nullptr);
  if (memory == nullptr || path.size() > sizeof files_->options.log.data) {
    return;
  }
  // The defaults, whatever the environment says: this log is the program's own.
  parse_options([](const char*) -> const char* { return nullptr; }, [](std::string_view, bool) {}, files_->options);
  std::memcpy(files_->options.log.data, path.data(), path.size());
  files_->options.log.size = static_cast<uint32_t>(path.size());
  files_->options.log_start = true;
  files_->options.backtrace = backtrace_depth;
  if (getcwd(files_->folder, sizeof files_->folder) == nullptr) {
    files_->folder[0] = '\0';
  }
  memory->configure({.options = &files_->options, .folder = files_->folder, .program = program_invocation_short_name});
  memory->allow();
  files_->recorder = memory;
}

// The recorder's pages stay: another thread may be inside a call that logs.
CsvFileSink::~CsvFileSink() = default;

SinkError CsvFileSink::emit(LogEntry& entry) noexcept {
  if (files_ == nullptr || files_->recorder == nullptr) {
    return SinkError::refused;
  }
  uint64_t lost = files_->recorder->lost_rows();
  files_->recorder->record(entry.event);
  return files_->recorder->lost_rows() == lost && !files_->recorder->failed() ? SinkError::none : SinkError::io;
}

void CsvFileSink::hold(Event& event, HeldRow& held, RowText& text) noexcept {
  if (files_ != nullptr && files_->recorder != nullptr) {
    files_->recorder->hold(event, held, text);
  }
}

SinkError CsvFileSink::complete(LogEntry& entry, const HeldRow& held, RowText* text, bool as_held) noexcept {
  if (!held.claimed) {
    return SinkError::io;
  }
  files_->recorder->complete(entry.event, held, text, as_held);
  return SinkError::none;
}

uint64_t CsvFileSink::stack_id(const void* caller) noexcept {
  return files_ != nullptr && files_->recorder != nullptr ? files_->recorder->stack_id(caller) : kNone;
}

}  // namespace xlog
