#include "tools/analysis/merge.h"

#include <algorithm>

namespace xlog::tools {

namespace {

// Many logs are read in smaller stretches, so that what is read ahead stays within some tens of megabytes.
RowReader::Settings settings_for(size_t logs, ReadAhead& helpers) {
  constexpr size_t kFew = 8;
  constexpr size_t kAll = 32 << 20;
  constexpr size_t kLeast = 8 << 10;
  RowReader::Settings settings{.helpers = &helpers};
  if (logs > kFew) {
    settings.stretch = std::clamp(kAll / logs, kLeast, settings.stretch);
    settings.stretches_ahead = 1;
  }
  return settings;
}

}  // namespace

LogMerge::LogMerge(const std::vector<ProcessLog>& logs, std::vector<std::string>& problems) {
  for (const ProcessLog& log : logs) {
    LogSource& source = sources_.emplace_back(log, settings_for(logs.size(), helpers_));
    std::string trouble = source.trouble(log.csv);
    if (!trouble.empty()) {
      problems.push_back(trouble);
    } else if (source.advance()) {
      heap_.push_back(sources_.size() - 1);
      span_.add({source.event().time, source.event().time});
      span_.add(span_of(source));
      bytes_ += source.file().text().size();
    }
  }
  for (size_t i = heap_.size() / 2; i-- > 0;) {
    sink(i);
  }
}

// Of the last rows, without reading what is before.
TimeSpan LogMerge::span_of(const LogSource& source) {
  constexpr size_t kTail = 64 << 10;
  TimeSpan span;
  std::string_view text = source.file().text();
  size_t end = text.rfind('\n') + 1;
  while (end != 0 && (text[end - 1] == '\n' || text[end - 1] == '\0')) {  // places that were never filled
    --end;
  }
  size_t from = end > kTail ? text.find('\n', end - kTail) + 1 : text.find('\n') + 1;
  if (end == 0 || from > end || end + 1 > text.size()) {
    return span;
  }
  RowBatch tail;
  tail.parse(source.reader().format(), text.substr(from, end + 1 - from), text.size() - end - 1);
  for (const Event& row : tail.rows()) {
    uint64_t time = row.time;
    if (source.reader().format().has_time_of_day() && time < source.event().time) {
      time += 86'400'000'000'000;
    }
    span.add({time, time});
  }
  return span;
}

void LogMerge::sink(size_t at) {
  auto before = [this](size_t a, size_t b) {
    uint64_t x = sources_[heap_[a]].event().time;
    uint64_t y = sources_[heap_[b]].event().time;
    return x != y ? x < y : heap_[a] < heap_[b];
  };
  for (;;) {
    size_t least = at;
    for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < heap_.size(); ++child) {
      least = before(child, least) ? child : least;
    }
    if (least == at) {
      return;
    }
    std::swap(heap_[at], heap_[least]);
    at = least;
  }
}

const Event* LogMerge::next(size_t& process) {
  if (begun_ && !heap_.empty()) {  // what the caller had is done with
    if (!sources_[heap_[0]].advance()) {
      heap_[0] = heap_.back();
      heap_.pop_back();
    }
    if (heap_.size() > 1) {
      sink(0);
    }
  }
  begun_ = true;
  if (heap_.empty()) {
    return nullptr;
  }
  process = heap_[0];
  return &sources_[process].event();
}

void LogMerge::tell(const Progress& progress) const {
  uint64_t done = 0;
  for (const LogSource& each : sources_) {
    done += each.reader().offset();
  }
  progress(done, bytes_);
}

}  // namespace xlog::tools
