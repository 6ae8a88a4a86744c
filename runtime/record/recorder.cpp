#include "runtime/record/recorder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/backtrace.h"
#include "runtime/base/diagnostics.h"
#include "runtime/base/memory_map.h"
#include "runtime/base/modules.h"
#include "runtime/base/thread.h"
#include "runtime/base/thread_tags.h"
#include "runtime/record/log_path.h"

namespace xlog {

namespace {

std::string_view failure_text(LogFailure failure) noexcept {
  switch (failure) {
    case LogFailure::full:
      return "no space left on the disk";
    case LogFailure::file_limit:
      return "file size limit (ulimit -f) reached";
    case LogFailure::max_bytes:
      return "XLOG_LOG_MAX reached";
    case LogFailure::gone:
      return "the file was moved, replaced or cannot be opened";
    case LogFailure::none:
      break;
  }
  return "";
}

// A FIFO or a device, named as it is, is written as it is.
bool is_stream_path(const char* path) noexcept {
  struct stat info {};
  return lstat(path, &info) == 0 && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode));
}

// Lost rows are counted in the file, in a row of fixed width whose place is claimed while there is room.
void put_lost_row(TextSink& out, uint64_t lost) noexcept {
  out.decimal(thread_id(), 10).put(',').decimal(wall_time(steady_time()), 19).put(',').put(action::lost).put(",,");
  out.decimal(lost, 20).put(",,,,,0,,,,ok,,,,,\n");
}

}  // namespace

uint64_t Recorder::stack_id(const void* caller) noexcept {
  uint32_t depth = config_.options != nullptr ? config_.options->backtrace : 0;
  if (depth == 0) {
    return kNone;
  }
  if (!ensure_open() || file_.is_stream()) {
    return kNone;
  }
  return take_stack(caller, depth);
}

// Apart, so that its frames are not on the program's stack while the log is opened.
__attribute__((noinline)) uint64_t Recorder::take_stack(const void* caller, uint32_t depth) noexcept {
  uintptr_t frames[kMaxDepth];
  PythonFrame python[kMaxPythonDepth];
  CallStack stack{.frames = frames, .python = python};
  stack.count = take_backtrace(frames, depth, caller);
  stack.python_count = python_.take(python, depth < kMaxPythonDepth ? depth : kMaxPythonDepth);
  return stacks_.id(stack, python_, generation_of(frames, stack.count), stacks_path_);
}

uint64_t Recorder::stack_id(const uintptr_t* frames, size_t count) noexcept {
  if (count == 0 || !ensure_open() || file_.is_stream()) {
    return kNone;
  }
  return stacks_.id({.frames = frames, .count = count}, python_, generation_of(frames, count), stacks_path_);
}

bool Recorder::ensure_open() noexcept {
  if (!allowed_.load(std::memory_order_relaxed) || config_.options == nullptr) {
    return false;
  }
  State state = state_.load(std::memory_order_acquire);
  bool opened = false;
  LogFailure header = LogFailure::none;
  if (state == State::untouched) {
    LockGuard guard(lock_);
    state = state_.load(std::memory_order_relaxed);
    if (state == State::untouched) {
      opened = open_locked(header);
      periods_ = config_.options->log_start ? 1 : 0;
      period_.store(periods_, std::memory_order_relaxed);
      state = opened ? State::open : State::failed;
      state_.store(state, std::memory_order_release);
    }
  }
  if (header != LogFailure::none) {
    count_lost(header);
  }
  if (opened) {  // these ask the loader and the driver: not under the lock
    if (config_.switchable && !file_.is_stream()) {
      switch_.open(file_.stem(), config_.options->log_start);
    }
    look_for_python();
    write_run_info();
  }
  return state == State::open;
}

bool Recorder::open_locked(LogFailure& header_failure) noexcept {
  utsname host{};
  uname(&host);
  PathFacts facts{.pid = static_cast<uint64_t>(getpid()),
                  .start_time = static_cast<uint64_t>(time(nullptr)),
                  .host = host.nodename,
                  .program = config_.program,
                  .folder = config_.folder,
                  .variable = [](const char* name) -> const char* { return secure_getenv(name); }};
  std::string_view pattern = config_.options->log.view();
  Text<1100> given;
  if (!pattern.starts_with('/')) {
    given.put(config_.folder).put('/');
  }
  given.put(pattern).put('\0');
  Text<1100> base;
  int error = 0;
  if (!given.full() && is_stream_path(given.data())) {
    error = file_.open_stream(given.data());
  } else if (!expand_log_path(pattern, facts, base)) {
    say("XLOG_LOG: not a path this library can use (placeholders are %p %h %r %t %q{VAR}); the program goes on without a log");
    return false;
  } else {
    if (pattern.ends_with('/')) {
      Text<1100> folder;
      folder.put(base.view().substr(0, base.view().rfind('/'))).put('\0');
      mkdir(folder.data(), 0700);
    }
    error = file_.create(base.view(), config_.options->log_max);
  }
  if (error != 0) {
    Text<1400> line;
    line.put("cannot write the log ").put(base.size() != 0 ? base.view() : pattern).put(": ").put(strerrordesc_np(error));
    line.put("; the program goes on without it");
    say(line.view());
    return false;
  }
  TextSink stacks(stacks_path_, sizeof stacks_path_ - 1);
  stacks.put(file_.stem()).put(".stacks.csv");
  stacks_path_[stacks.size()] = '\0';
  Text<512> header;
  put_header(header);
  LogPlace place;
  header_failure = file_.claim(header.size(), place);
  if (header_failure == LogFailure::none) {
    file_.fill(place, header.view(), {}, {});
  }
  return true;
}

void Recorder::look_for_python() noexcept {
  PythonApi python;
  if (config_.options->backtrace != 0 && config_.find_python != nullptr && config_.find_python(python)) {
    python_.use(python);
  }
}

void Recorder::write_run_info() noexcept {
  constexpr size_t kBytes = 256 << 10;
  void* memory = config_.run_info != nullptr && !file_.is_stream() ? map_state(kBytes) : nullptr;
  if (memory == nullptr) {
    return;
  }
  TextSink text(static_cast<char*>(memory), kBytes);
  config_.run_info(text, config_.run_info_context);
  Text<1240> path;
  path.put(file_.stem()).put(".run.json").put('\0');
  append_file(path.data(), text.view(), true);
  unmap_state(memory, kBytes);
}

bool Recorder::write_companion(std::string_view suffix, std::string_view text) noexcept {
  if (!ensure_open() || file_.is_stream()) {
    return false;
  }
  Text<1240> path;
  path.put(file_.stem()).put(suffix).put('\0');
  return !path.full() && replace_file(path.data(), text) == 0;
}

bool Recorder::claim(size_t size_without_seq, LogPlace& place, uint64_t& seq) noexcept {
  LogFailure failure = file_.claim(size_without_seq, place, seq);
  if (failure != LogFailure::none) {
    count_lost(failure);
  }
  return failure == LogFailure::none;
}

void Recorder::stamp(Event& event) noexcept {
  event.thread = thread_id();
  event.thread_name = thread_name();
  ThreadTags own = thread_tags(config_.options->tag.view());
  if (event.tag.empty()) {
    event.tag = own.tag.empty() ? config_.options->tag.view() : own.tag;
  }
  event.query_id = own.query_id.empty() ? config_.options->query_id.view() : own.query_id;
  if (event.time == 0) {
    event.time = wall_time(steady_time());
  }
}

void Recorder::record(Event& event) noexcept {
  if (event.result == "ok") {
    allow();
  }
  if (!ensure_open()) {
    return;
  }
  stamp(event);
  RowHead head;
  RowTail tail;
  put_row_head(head, event);
  put_row_tail(tail, event);
  LogPlace place;
  if (claim(head.size() + tail.size(), place, event.seq)) {
    Text<20> seq;
    seq.decimal(event.seq);
    file_.fill(place, head.view(), seq.view(), tail.view());
  }
}

void Recorder::hold(Event& event, HeldRow& out, RowText& text) noexcept {
  if (!ensure_open()) {
    return;
  }
  stamp(event);
  event.result = "ok";
  event.elapsed_ns = 0;
  put_row_head(text.head, event);
  put_row_tail(text.tail, event, kHeldDigits, &out.elapsed_at);
  out.claimed = claim(text.head.size() + text.tail.size(), out.place, out.seq);
  out.time = event.time;
  out.live_bytes = event.live_bytes;
}

void Recorder::complete(Event& event, const HeldRow& held, RowText* text, bool as_held) noexcept {
  if (!held.claimed) {
    return;
  }
  constexpr uint64_t kMostElapsed = 999'999'999'999;
  event.elapsed_ns = event.elapsed_ns < kMostElapsed ? event.elapsed_ns : kMostElapsed;
  if (!as_held) {
    retract(event, held);
    record(event);
  } else if (text == nullptr) {
    fill_anew(event, held);
  } else {
    TextSink(text->tail.data() + held.elapsed_at, kHeldDigits).decimal(event.elapsed_ns, kHeldDigits);
    fill(held, *text);
  }
}

void Recorder::fill(const HeldRow& held, const RowText& text) noexcept {
  Text<20> seq;
  seq.decimal(held.seq);
  file_.fill(held.place, text.head.view(), seq.view(), text.tail.view());
}

// These two are apart so that the common path does not carry their text on its stack, which may be a small one.
__attribute__((noinline)) void Recorder::fill_anew(Event& event, const HeldRow& held) noexcept {
  stamp(event);
  RowText text;
  put_row_head(text.head, event);
  put_row_tail(text.tail, event, kHeldDigits);
  fill(held, text);
}

__attribute__((noinline)) void Recorder::retract(const Event& event, const HeldRow& held) noexcept {
  Event note;
  note.thread = thread_id();
  note.time = held.time;
  note.action = action::retracted;
  note.ptr = event.ptr;
  RowText text;
  put_row_head(text.head, note);
  put_row_tail(text.tail, note);
  fill(held, text);  // shorter than the place: the rest of it stays empty lines
}

void Recorder::count_lost(LogFailure reason) noexcept {
  uint64_t lost = lost_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!said_lost_.exchange(true, std::memory_order_relaxed)) {
    Text<1400> line;
    line.put("log ").put(file_.path()).put(": ").put(failure_text(reason)).put("; later rows are only counted, the program goes on");
    say(line.view());
  }
  if ((lost & (lost - 1)) == 0 || lost % 1024 == 0) {  // after SIGKILL the count is a lower bound
    write_lost_row(lost);
  }
}

// Where there is room: XLOG_LOG_MAX does not count this one row, and on a full disk it may fit where no other did.
void Recorder::write_lost_row(uint64_t lost) noexcept {
  Text<256> row;
  put_lost_row(row, lost);
  bool claimed = false;
  {
    LockGuard guard(lock_);
    claimed = lost_place_.size == 0 && file_.claim_beyond_max(row.size(), lost_place_) == LogFailure::none;
  }
  if (claimed) {
    file_.fill(lost_place_, row.view(), {}, {});
  } else if (lost_place_.size != 0) {
    file_.overwrite(lost_place_.offset, row.view());
  }
}

void Recorder::mark(std::string_view action) noexcept {
  Event event;
  event.action = action;
  event.result = "ok";
  record(event);
}

// The mark of the beginning stands before all rows of the period. The mark of the end may have rows of other threads behind it.
bool Recorder::switch_over() noexcept {
  if (switching_.exchange(true, std::memory_order_acquire)) {
    return false;
  }
  bool is_due = is_to_switch();
  bool on = is_due && period_.load(std::memory_order_relaxed) == 0;
  if (on) {
    mark(action::log_on);
    period_.store(++periods_, std::memory_order_release);
  } else if (is_due) {
    period_.store(0, std::memory_order_relaxed);
    mark(action::log_off);
  }
  if (is_due) {
    switch_.tell(on);
  }
  switching_.store(false, std::memory_order_release);
  return on;
}

void Recorder::begin_exit() noexcept {
  if (state_.load(std::memory_order_acquire) != State::open) {
    return;
  }
  switch_.remove();
  mark(action::exit);
  if (lost_rows() != 0) {
    write_lost_row(lost_rows());
  }
  if (!file_.is_stream()) {
    file_.settle();
  }
}

}  // namespace xlog
