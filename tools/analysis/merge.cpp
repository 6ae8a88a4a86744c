#include "tools/analysis/merge.h"

#include <algorithm>

#include "tools/log/running.h"

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

// A row `lost` is written when the others are, and stands in front of them: its time is no moment of the run.
uint64_t order_of(const Event& row) { return row.action == action::lost ? 0 : row.time; }

}  // namespace

LogMerge::LogMerge(const std::vector<ProcessLog>& logs, std::vector<std::string>& problems) {
  for (const ProcessLog& log : logs) {
    states_.push_back({.log = &log});
    LogSource& source = sources_.emplace_back(log, settings_for(logs.size(), helpers_));
    std::string trouble = source.trouble(log.csv);
    if (!trouble.empty()) {
      problems.push_back(trouble);
    } else if (source.advance()) {
      heap_.push_back(sources_.size() - 1);
      span_.add(span_of(source));
      bytes_ += source.file().text().size();
    }
  }
  for (size_t i = heap_.size() / 2; i-- > 0;) {
    sink(i);
  }
}

// Of the first and the last rows, without reading what is between.
TimeSpan LogMerge::span_of(const LogSource& source) {
  constexpr size_t kTail = 64 << 10;
  TimeSpan span;
  std::string_view text = source.file().text();
  size_t end = text.rfind('\n') + 1;
  while (end != 0 && (text[end - 1] == '\n' || text[end - 1] == '\0')) {  // places that were never filled
    --end;
  }
  size_t from = end > kTail ? text.find('\n', end - kTail) + 1 : text.find('\n') + 1;
  constexpr size_t kAhead = 4;  // behind a row `lost`
  const Event* first = &source.event();
  for (size_t i = 0; i < kAhead && first != nullptr && first->action == action::lost; ++i) {
    first = source.reader().peek(i);
  }
  if (first != nullptr && first->action != action::lost) {
    span.add({first->time, first->time});
  }
  if (end == 0 || from > end || end + 1 > text.size()) {
    return span;
  }
  RowBatch tail;
  tail.parse(source.reader().format(), text.substr(from, end + 1 - from), text.size() - end - 1);
  for (const Event& row : tail.rows()) {
    uint64_t time = row.time;
    if (row.action == action::lost) {
      continue;
    }
    if (source.reader().format().has_time_of_day() && time < source.event().time) {
      time += 86'400'000'000'000;
    }
    span.add({time, time});
  }
  return span;
}

void LogMerge::sink(size_t at) {
  auto before = [this](size_t a, size_t b) {
    uint64_t x = order_of(sources_[heap_[a]].event());
    uint64_t y = order_of(sources_[heap_[b]].event());
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
      read_to_the_end(heap_[0]);
      heap_[0] = heap_.back();
      heap_.pop_back();
    }
    if (heap_.size() > 1) {
      sink(0);
    }
  }
  begun_ = true;
  ended_.clear();
  if (heap_.empty()) {
    return nullptr;
  }
  process = heap_[0];
  states_[process].exited = states_[process].exited || sources_[process].event().action == action::exit;
  if (!read_.empty()) {
    find_ended();
  }
  return &sources_[process].event();
}

void LogMerge::read_to_the_end(size_t process) {
  State& state = states_[process];
  state.runs = !state.exited && xlog::tools::still_runs(*state.log);
  if (!state.runs) {
    read_.push_back(process);
  }
}

void LogMerge::find_ended() {
  uint64_t now = sources_[heap_[0]].event().time;
  for (size_t each : read_) {
    if (states_[each].log->ended_ns < now) {
      ended_.push_back(each);
    }
  }
  std::erase_if(read_, [&](size_t each) { return states_[each].log->ended_ns < now; });
}

void LogMerge::tell(const Progress& progress) const {
  uint64_t done = 0;
  for (const LogSource& each : sources_) {
    done += each.reader().offset();
  }
  progress(done, bytes_);
}

}  // namespace xlog::tools
