#include "tools/analysis/whole_log.h"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>
#include <unordered_map>

#include "tools/log/block_rows.h"
#include "tools/report/format.h"

namespace xlog::tools {

namespace {

struct Block {
  uint64_t bytes = 0;
  uint64_t generation = kNone;
  uint64_t stack = kNone;
  uint64_t time = 0;
  uint64_t row = 0;
  uint64_t device = kNone;  // kNone: of no GPU
  bool is_host = false;
};

// One process's rows, in file order.
class OneLog {
 public:
  OneLog(const Report& report, size_t process) : report_(report), process_(process) {}

  void take(const Event& event, bool is_own_format);
  // After the last row.
  void finish(const RowReader& reader, WholeLog& out);

 private:
  void doubt(const std::string& what, const Event& event);
  void check_cells(const Event& event, bool is_own_format);
  void begin(const Event& event);
  void end(const Event& event);
  void keep(const Block& block) { kept_[{block.device, block.is_host, block.stack}].push_back(block); }
  bool frees_at_exit(uint64_t stack);
  bool grew(const std::vector<Block>& blocks) const;
  std::string gpu_key(uint64_t device, bool is_host) const;

  const Report& report_;
  size_t process_;
  std::unordered_map<uint64_t, Block> live_;  // by address
  std::map<uint64_t, uint64_t> replaced_;     // of a live block whose address was given out again: generation, seq
  std::map<std::tuple<uint64_t, bool, uint64_t>, std::vector<Block>> kept_;  // by device, whether pinned, and stack
  std::map<uint64_t, bool> is_exit_;                                         // by stack
  uint64_t rows_ = 0;
  uint64_t last_seq_ = 0;
  uint64_t missing_ = 0;
  uint64_t first_time_ = 0;
  uint64_t last_time_ = 0;  // before the exit began
  uint64_t last_row_ = 0;
  bool exit_begun_ = false;
  uint64_t doubts_ = 0;
  std::string first_doubt_;
};

void OneLog::doubt(const std::string& what, const Event& event) {
  if (doubts_++ == 0) {
    first_doubt_ = (event.seq != kNone ? "the row with seq " + std::to_string(event.seq) : "row " + std::to_string(rows_)) + ' ' + what;
  }
}

// What a row of its sort cannot be without. A cell that cannot be read, as "-1" or 2^64 in `bytes`, is one that is not there.
void OneLog::check_cells(const Event& event, bool is_own_format) {
  if (is_own_format && event.seq == kNone) {
    doubt("has no number that can be read in \"seq\"", event);
  }
  bool begins = begins_block(event);
  if (!begins && !ends_block(event)) {
    return;
  }
  if (event.result.empty()) {
    doubt("has no \"result\"", event);
  }
  if (event.result != "ok") {
    return;  // what was refused has no address, and more than 64 bits hold may have been asked for
  }
  if (event.ptr == kNone) {
    doubt("has no address that can be read in \"ptr\"", event);
  }
  if (begins && event.bytes == kNone) {
    doubt("has no number that can be read in \"bytes\"", event);
  }
  if (begins && event.device == kNone && event.kind != "host" && event.kind != "import") {
    doubt("has no number that can be read in \"device\"", event);
  }
}

// As GpuReport::key.
std::string OneLog::gpu_key(uint64_t device, bool is_host) const {
  if (device == kNone) {
    return is_host ? "host" : "import";
  }
  const auto& gpus = report_.logs[process_].gpus;
  auto info = gpus.find(device);
  return info != gpus.end() && !info->second.uuid.empty() ? info->second.uuid : std::to_string(device);
}

bool OneLog::frees_at_exit(uint64_t stack) {
  if (exit_begun_ || stack == kNone) {
    return exit_begun_;
  }
  auto [known, is_new] = is_exit_.try_emplace(stack, false);
  if (is_new) {
    const Stack* found = report_.stacks[process_].find(stack);
    known->second = found != nullptr && is_exit(*found);
  }
  return known->second;
}

void OneLog::begin(const Event& event) {
  if (event.result != "ok" || event.ptr == kNone) {
    return;
  }
  auto old = live_.find(event.ptr);
  bool is_same = old != live_.end() && event.action == action::live && old->second.generation == event.generation;
  if (old != live_.end() && !is_same) {
    replaced_[old->second.generation] = event.seq;
  }
  if (!is_same) {
    live_[event.ptr] = {.bytes = event.bytes != kNone ? event.bytes : 0,
                        .generation = event.generation,
                        .stack = event.stack_id,
                        .time = event.time,
                        .row = rows_,
                        .device = event.device,
                        .is_host = event.device == kNone && event.kind == "host"};
  }
}

void OneLog::end(const Event& event) {
  if (event.result != "ok" || event.kind == "foreign") {
    return;
  }
  if (event.action == action::ended_unseen) {
    replaced_.erase(event.generation);
    return;
  }
  auto block = live_.find(event.ptr);
  if (block == live_.end() || block->second.generation != event.generation) {
    return;  // the analysis has it among its contradictions
  }
  if (frees_at_exit(event.stack_id)) {
    exit_begun_ = true;
    keep(block->second);
  }
  live_.erase(block);
}

void OneLog::take(const Event& event, bool is_own_format) {
  if (event.action == action::lost) {
    return;
  }
  ++rows_;
  check_cells(event, is_own_format);
  if (event.seq != kNone && event.seq > last_seq_) {
    missing_ += event.seq - last_seq_ - 1;
    last_seq_ = event.seq;
  }
  first_time_ = rows_ == 1 ? event.time : std::min(first_time_, event.time);
  if (begins_block(event)) {
    begin(event);
  } else if (ends_block(event)) {
    end(event);
  } else if (event.action == action::log_on || event.action == action::log_off) {
    live_.clear();  // the rows that follow say anew what is live
    replaced_.clear();
  } else if (event.action == action::exit) {
    exit_begun_ = true;
  }
  if (!exit_begun_) {
    last_time_ = std::max(last_time_, event.time);
    last_row_ = rows_;
  }
}

// Eighths of the process's life, by time; and by its rows, for a program that waits for long before it works.
bool OneLog::grew(const std::vector<Block>& blocks) const {
  constexpr size_t kFewest = 4;
  constexpr int kOfFour = 3;
  unsigned by_time = 0;
  unsigned by_rows = 0;
  auto eighth = [](uint64_t part, uint64_t whole) {
    auto scaled =
        whole == 0 ? 0 : static_cast<unsigned>(static_cast<unsigned __int128>(part) * 8 / (static_cast<unsigned __int128>(whole) + 1));
    return 1U << std::min(scaled, 7U);
  };
  for (const Block& block : blocks) {
    by_time |= eighth(block.time - std::min(block.time, first_time_), last_time_ - std::min(last_time_, first_time_));
    by_rows |= eighth(block.row, last_row_);
  }
  bool in_time = std::popcount(by_time >> 4) >= kOfFour;
  bool in_rows = std::popcount(by_rows >> 4) >= kOfFour && (by_time & 0x80U) != 0;
  return blocks.size() >= kFewest && (in_time || in_rows);
}

void OneLog::finish(const RowReader& reader, WholeLog& out) {
  constexpr uint64_t kShortestRow = 32;
  constexpr uint64_t kLongestRow = 4096;
  const std::string& name = report_.logs[process_].csv;
  const ProcessReport& process = report_.processes[process_];
  if (doubts_ != 0) {
    out.doubts.push_back(name + ": " + first_doubt_ + (doubts_ > 1 ? ", and " + plural(doubts_ - 1, "more fault") + " of that sort" : ""));
  }
  if (reader.cut()) {
    out.doubts.push_back(name + ": the last row is not whole: the file was cut");
  }
  // Calls that had not returned leave a number without a row, and empty lines in its place.
  if (missing_ * kShortestRow > reader.empty_lines() + reader.unfinished_rows() * kLongestRow) {
    out.doubts.push_back(name + ": " + plural(missing_, "row") + " missing between the first and the last");
  }
  if (!replaced_.empty() && reader.unfinished_rows() == 0) {
    out.doubts.push_back(name + ": " + plural(replaced_.size(), "allocation") +
                         " at the address of a block that was live; the first has seq " + std::to_string(replaced_.begin()->second));
  }
  if (!process.ended && rows_ != 0) {
    out.open_ends.push_back(name + ": the log ends without an end mark: the process was killed or is running, or the end was cut off");
  }
  for (const auto& [address, block] : live_) {
    keep(block);
  }
  for (const auto& [key, blocks] : kept_) {
    if (grew(blocks)) {
      const auto& [device, is_host, stack] = key;
      KeptGrowth& growth =
          out.growth.emplace_back(KeptGrowth{.gpu = gpu_key(device, is_host), .stack = {process_, stack}, .blocks = blocks.size()});
      for (const Block& block : blocks) {
        growth.bytes += block.bytes;
      }
    }
  }
}

// What the analysis has counted already.
void add_counted(const Report& report, WholeLog& out) {
  if (!report.problems.empty()) {
    out.doubts.push_back(plural(report.problems.size(), "log") + " cannot be read");
  }
  if (report.lost != 0) {
    out.doubts.push_back(plural(report.lost, "row") + " could not be written when the program ran");
  }
  if (report.foreign_rows != 0) {
    out.doubts.push_back(plural(report.foreign_rows, "line") + (report.foreign_rows == 1 ? " is" : " are") + " no row of a log");
  }
  if (report.contradiction_count != 0) {
    out.doubts.push_back("the log contradicts itself in " + plural(report.contradiction_count, "row") +
                         "; the first: " + (report.contradictions.empty() ? "" : report.contradictions.front()));
  }
}

// By XLOG_LOG_MIN, XLOG_LOG_SAMPLE, XLOG_LOG_START and `xlog log`.
void add_left_out(const Report& report, WholeLog& out) {
  bool some = std::any_of(report.logs.begin(), report.logs.end(), [](const ProcessLog& log) { return log.sample + log.least != 0; });
  if (some) {
    out.left_out.emplace_back("blocks are left out of the log, as XLOG_LOG_MIN or XLOG_LOG_SAMPLE says");
  }
  if (report.switches != 0) {
    out.left_out.push_back("the log was switched " + plural(report.switches, "time") +
                           " (xlog log): what happened while it was off is not in it");
  }
}

}  // namespace

WholeLog examine_log(const Report& report) {
  WholeLog out;
  add_counted(report, out);
  add_left_out(report, out);
  std::vector<std::string> problems;  // the analysis has them
  LogMerge merge(report.logs, problems);
  std::vector<OneLog> logs;
  logs.reserve(report.logs.size());
  for (size_t i = 0; i < report.logs.size(); ++i) {
    logs.emplace_back(report, i);
  }
  size_t process = 0;
  for (const Event* event = merge.next(process); event != nullptr; event = merge.next(process)) {
    logs[process].take(*event, merge.source(process).reader().format().dialect() == Dialect::xlog);
  }
  for (size_t i = 0; i < logs.size(); ++i) {
    logs[i].finish(merge.source(i).reader(), out);
  }
  std::stable_sort(out.growth.begin(), out.growth.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return out;
}

}  // namespace xlog::tools
