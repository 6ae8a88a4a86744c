// The writer of one process's log: NAME.csv, NAME.stacks.csv and NAME.run.json. Its own trouble (disk full, unwritable
// path, size limit) never reaches the caller: one message, and a count of the rows lost. Thread-safe. Lives in
// wiped-on-fork memory: all zero is a recorder that has written nothing, so a fork child opens a log of its own when it
// first has something to write.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "runtime/base/lock.h"
#include "runtime/base/options.h"
#include "runtime/base/python_frames.h"
#include "runtime/record/event.h"
#include "runtime/record/log_file.h"
#include "runtime/record/log_switch.h"
#include "runtime/record/row_writer.h"
#include "runtime/record/stack_table.h"

namespace xlog {

// The text of a row that is claimed before its call and filled after it: all but the duration is known before.
struct RowText {
  RowHead head;
  RowTail tail;
};

// A row whose place and `seq` are claimed and whose call has not returned.
struct HeldRow {
  LogPlace place;
  uint64_t seq = 0;
  uint32_t elapsed_at = 0;  // where the duration's digits stand in the row's tail
  uint64_t time = 0;        // the event's, at the claim
  uint64_t live_bytes = 0;  // the event's, at the claim
  bool claimed = false;
  bool unlogged = false;  // the block has no rows
};

// Puts the object that becomes NAME.run.json; called once, when the log is opened.
using RunInfoWriter = void (*)(TextSink& out, const void* context);

class Recorder {
 public:
  struct Config {
    const Options* options = nullptr;
    std::string_view folder;   // where relative paths start
    std::string_view program;  // file name of the program
    RunInfoWriter run_info = nullptr;
    const void* run_info_context = nullptr;
    FindPython find_python = nullptr;  // asked once, when the log was opened
    bool switchable = false;           // whoever makes events asks is_to_switch()
  };
  // Until it is configured, and in a fork child until it is configured anew, nothing is written.
  void configure(const Config& config) noexcept { config_ = config; }

  // A process in which every call fails (a fork child of a CUDA program) leaves no log: nothing is written before this,
  // or before the first event whose call succeeded.
  void allow() noexcept { allowed_.store(true, std::memory_order_relaxed); }

  // Which time the log is on, from 1; 0 while it is off. What is recorded while it is off has its row all the same: whoever
  // makes events asks.
  [[nodiscard]] uint32_t period() const noexcept {
    bool begun = state_.load(std::memory_order_acquire) == State::open;
    return begun ? period_.load(std::memory_order_acquire) : config_.options == nullptr || config_.options->log_start ? 1 : 0;
  }
  // `xlog log` wants it otherwise. A log that begins off is opened by the first look.
  [[nodiscard]] bool is_to_switch() noexcept {
    bool begun = state_.load(std::memory_order_relaxed) == State::open;
    if (!begun && (config_.options == nullptr || config_.options->log_start || !ensure_open())) {
      return false;
    }
    bool on = period_.load(std::memory_order_relaxed) != 0;
    return switch_.is_wanted(on) != on;
  }
  // Switches it, if nobody else does. True: it is on now, and what is live has no rows yet in this period.
  bool switch_over() noexcept;

  // Stack of the caller as a number in NAME.stacks.csv; kNone without one. Takes no lock while unwinding.
  uint64_t stack_id(const void* caller) noexcept;
  // The same for a stack that was taken earlier.
  uint64_t stack_id(const uintptr_t* frames, size_t count) noexcept;

  // For an event whose call has returned.
  void record(Event& event) noexcept;
  // For an event whose call is about to be made: claims its place now. `complete` fills it. The tag (where the
  // event has none), query id and thread columns are filled in by the recorder.
  // `text` keeps the row until then; without it the row is made anew, from an event with the same contents.
  void hold(Event& event, HeldRow& out, RowText& text) noexcept;
  // `as_held`: the call did what the row says. Otherwise the place is marked `retracted` and the event gets a new row.
  void complete(Event& event, const HeldRow& held, RowText* text, bool as_held) noexcept;

  // A file beside the log, NAME + `suffix`, made anew. False where there is no log, or it could not be written.
  bool write_companion(std::string_view suffix, std::string_view text) noexcept;
  // NAME.stacks.csv; nullptr where there is no log.
  [[nodiscard]] const char* stacks_path() const noexcept {
    return state_.load(std::memory_order_acquire) == State::open && !file_.is_stream() ? stacks_path_ : nullptr;
  }

  // End mark; cuts the file to its length. Rows may still follow.
  void begin_exit() noexcept;

  // The log could not be opened: nothing is written.
  [[nodiscard]] bool failed() const noexcept { return state_.load(std::memory_order_relaxed) == State::failed; }
  [[nodiscard]] uint64_t lost_rows() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  enum class State : uint8_t { untouched, open, failed };

  uint64_t take_stack(const void* caller, uint32_t depth) noexcept;
  bool ensure_open() noexcept;
  bool open_locked(LogFailure& header_failure) noexcept;
  void look_for_python() noexcept;
  void write_run_info() noexcept;
  bool claim(size_t size_without_seq, LogPlace& place, uint64_t& seq) noexcept;
  void stamp(Event& event) noexcept;
  void fill(const HeldRow& held, const RowText& text) noexcept;
  void fill_anew(Event& event, const HeldRow& held) noexcept;
  void retract(const Event& event, const HeldRow& held) noexcept;
  void fill_place(const LogPlace& place, std::string_view head, std::string_view seq, std::string_view tail) noexcept;
  void count_lost(LogFailure reason) noexcept;
  void write_lost_row() noexcept;
  void put_lost_row_in_place(uint64_t lost) noexcept;
  bool write_lost_row_to_stream() noexcept;
  void end_stream() noexcept;
  static void say_not_written(const char* path, int error) noexcept;
  void mark(std::string_view action) noexcept;

  Config config_;
  Lock lock_;
  std::atomic<bool> allowed_;
  std::atomic<State> state_;
  LogFile file_;
  LogSwitch switch_;
  std::atomic<bool> switching_;
  std::atomic<uint32_t> period_;
  uint32_t periods_;  // so far
  StackTable stacks_;
  PythonFrames python_;
  std::atomic<uint64_t> lost_;
  std::atomic<bool> said_lost_;
  std::atomic<uint64_t> untold_;  // of `lost_`, those of which the stream's reader has no row
  std::atomic<bool> writing_lost_;
  LogPlace lost_place_;
  char stacks_path_[1240];
};

}  // namespace xlog
