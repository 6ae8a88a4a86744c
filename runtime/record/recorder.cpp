#include "runtime/record/recorder.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/backtrace.h"
#include "runtime/base/diagnostics.h"
#include "runtime/base/memory_map.h"
#include "runtime/base/modules.h"
#include "runtime/base/signals_held.h"
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
    case LogFailure::unwritten:
      return "rows cannot be written";
    case LogFailure::none:
      break;
  }
  return "";
}

// A FIFO or a device, named as it is, is written as it is.
bool is_stream_path(const char* path) noexcept {
  struct stat info;
  return kernel::status_of_path(path, info) == 0 && (S_ISFIFO(info.st_mode) || S_ISCHR(info.st_mode));
}

// Lost rows are counted in the file, in a row of fixed width whose place is claimed while there is room.
constexpr size_t kLostRowBytes = 75;
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
    SignalsHeld held;
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
      int error = switch_.open(file_.stem(), config_.options->log_start);
      if (error != 0) {
        say("the log cannot be switched on and off: its .control file cannot be made");
      }
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
      kernel::make_folder(folder.data(), 0700);
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
  if (header_failure == LogFailure::none && !file_.fill(place, header.view(), {}, {})) {
    header_failure = LogFailure::unwritten;
  }
  if (header_failure == LogFailure::none && !file_.is_stream()) {
    file_.claim_beyond_max(kLostRowBytes, lost_place_);
  }
  return true;
}

void Recorder::look_for_python() noexcept {
  PythonApi python;
  if (config_.options->backtrace != 0 && config_.find_python != nullptr && config_.find_python(python)) {
    python_.use(python);
  }
}

void Recorder::say_not_written(const char* path, int error) noexcept {
  Text<1400> line;
  line.put("cannot write ").put(path).put(": ").put(strerrordesc_np(error)).put("; the log goes on without it");
  say(line.view());
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
  FileIdentity made;
  int error = create_file(path.data(), text.view(), made);
  if (error != 0) {
    say_not_written(path.data(), error);
  }
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
    fill_place(place, head.view(), seq.view(), tail.view());
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
  fill_place(held.place, text.head.view(), seq.view(), text.tail.view());
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

void Recorder::fill_place(const LogPlace& place, std::string_view head, std::string_view seq, std::string_view tail) noexcept {
  if (file_.is_stream() && untold_.load(std::memory_order_relaxed) != 0) {
    write_lost_row_to_stream();
  }
  if (!file_.fill(place, head, seq, tail)) {
    count_lost(LogFailure::unwritten);
  }
}

void Recorder::count_lost(LogFailure reason) noexcept {
  lost_.fetch_add(1, std::memory_order_relaxed);
  if (!said_lost_.exchange(true, std::memory_order_relaxed)) {
    Text<1400> line;
    line.put("log ").put(file_.path()).put(": ").put(failure_text(reason)).put("; later rows are only counted, the program goes on");
    say(line.view());
  }
  if (file_.is_stream()) {
    untold_.fetch_add(1, std::memory_order_relaxed);
  } else {
    write_lost_row();
  }
}

// In a place that was claimed when the file was made, since it may be full by now. Whoever is writing it writes again what
// others have counted meanwhile.
void Recorder::write_lost_row() noexcept {
  SignalsHeld held;
  for (uint64_t written = 0; written != lost_rows();) {
    if (writing_lost_.exchange(true, std::memory_order_acquire)) {
      return;
    }
    written = lost_rows();
    put_lost_row_in_place(written);
    writing_lost_.store(false, std::memory_order_release);
  }
}

void Recorder::put_lost_row_in_place(uint64_t lost) noexcept {
  Text<256> row;
  put_lost_row(row, lost);
  if (lost_place_.size == 0 && file_.claim_beyond_max(row.size(), lost_place_) != LogFailure::none) {
    return;
  }
  if (file_.overwrite_mapped(lost_place_.offset, row.view())) {
    return;
  }
  // Where somebody cut the file the header is gone too.
  Text<512> header;
  put_header(header);
  if (lost_place_.offset >= header.size()) {
    file_.overwrite(0, header.view());
  }
  file_.overwrite(lost_place_.offset, row.view());
}

// A stream has one for each time that its reader was too slow, before the next row.
bool Recorder::write_lost_row_to_stream() noexcept {
  uint64_t lost = untold_.exchange(0, std::memory_order_relaxed);
  Text<256> row;
  put_lost_row(row, lost);
  bool written = lost == 0 || file_.fill({}, row.view(), {}, {});
  if (!written) {
    untold_.fetch_add(lost, std::memory_order_relaxed);
  }
  return written;
}

void Recorder::mark(std::string_view action) noexcept {
  Event event;
  event.action = action;
  event.result = "ok";
  record(event);
}

// The mark of the beginning stands before all rows of the period. The mark of the end may have rows of other threads behind it.
bool Recorder::switch_over() noexcept {
  SignalsHeld held;
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
  if (file_.is_stream()) {
    end_stream();
    return;
  }
  mark(action::exit);
  if (lost_rows() != 0) {
    put_lost_row_in_place(lost_rows());
  }
  file_.settle();
}

// A reader that is only slow is given a moment to make room for the count.
void Recorder::end_stream() noexcept {
  constexpr unsigned kPatience = 200;
  if (untold_.load(std::memory_order_relaxed) != 0) {
    file_.is_writable_within(kPatience);
  }
  mark(action::exit);
  uint64_t untold = untold_.load(std::memory_order_relaxed);
  if (untold != 0 && !write_lost_row_to_stream()) {
    Text<1400> line;
    line.put("log ").put(file_.path()).put(": ").decimal(untold).put(" rows were lost, and it does not say so");
    say(line.view());
  }
}

}  // namespace xlog
