// One pass over the logs of a run, in time order: what a report is made from. Memory grows with live blocks and stacks,
// not with rows.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "runtime/record/event.h"
#include "tools/analysis/address_map.h"
#include "tools/analysis/groups.h"
#include "tools/analysis/merge.h"
#include "tools/analysis/savings.h"
#include "tools/analysis/timeline.h"
#include "tools/log/log_set.h"
#include "tools/log/stacks.h"

namespace xlog::tools {

// A stack of one process. The same stack of other processes has the same place.
struct StackKey {
  size_t process = 0;
  uint64_t stack = kNone;
  auto operator<=>(const StackKey&) const = default;
};

struct Refusal {
  size_t process = 0;
  uint64_t time = 0;
  uint64_t requested = 0;
  uint64_t live = 0;
  uint32_t place = 0;
  std::string api;
  std::string result;
  std::string message;  // begins "out of budget" when the limit refused
  std::vector<Holder> holders;
  Holes holes;
  [[nodiscard]] bool by_limit() const { return message.starts_with("out of budget"); }
};

// What the driver said that it has in use on a GPU, at one moment, and what the log's blocks came to then.
struct DriverLook {
  uint64_t used = 0;
  uint64_t counted = 0;
  uint64_t pool_idle = 0;  // of the default pool: reserved and not in a block
  [[nodiscard]] uint64_t beyond() const { return used > counted ? used - counted : 0; }
};

// Allocations of [2^(i-1), 2^i) bytes.
struct SizeClass {
  uint64_t allocations = 0;
  uint64_t bytes = 0;
  uint64_t taken = 0;  // as the driver rounds
};

// Blocks that lived for less than 10^i ns, and longer than the class before.
struct LifetimeClass {
  uint64_t blocks = 0;
  uint64_t bytes = 0;
};

// A stack whose live bytes grow from one eighth of the run to the next, over its second half.
struct Growth {
  uint32_t place = 0;
  uint64_t from = 0;  // at 3/8
  uint64_t to = 0;    // at 7/8
};

// One GPU; or memory that is no GPU's: pinned host memory, and what was imported.
struct GpuReport {
  std::string key;  // UUID, or the ordinal; the kind of memory that is no GPU's
  GpuInfo info;
  uint64_t ordinal = 0;
  size_t stands_for = 1;  // so many GPUs, whose sum it is
  uint64_t live = 0;      // once all is read: never freed, as in the groups and for a process
  uint64_t live_blocks = 0;
  uint64_t live_taken = 0;  // as the driver rounds it
  uint64_t peak = 0;
  uint64_t peak_time = 0;
  uint64_t peak_epoch = 0;
  uint64_t peak_taken = 0;
  uint64_t allocations = 0;
  uint64_t failed = 0;
  uint64_t refusals = 0;
  uint64_t refused_since = 0;  // least that was refused and has not been given since (a quarter of it counts); 0: none
  std::array<Groups, kDimensions> groups;
  std::vector<Refusal> refused;  // the first and the last few
  uint64_t looks = 0;
  DriverLook first_look;
  DriverLook most_look;  // when the driver had most in use
  Timeline timeline;
  std::vector<Snapshot> snapshots;
  std::vector<Growth> growing;
  Holes holes;  // at the end

  [[nodiscard]] bool is_gpu() const { return ordinal != kNone; }
  [[nodiscard]] const Groups& by(By what) const { return groups[static_cast<size_t>(what)]; }
};

// What the guard has found; `place` allocated the block.
struct GuardFinding {
  std::string text;
  std::string found_by;
  uint64_t time = 0;
  size_t process = 0;
  uint32_t place = 0;
};

struct StackTime {
  uint64_t calls = 0;
  uint64_t ns = 0;
};

struct ThreadName {
  size_t process = 0;
  uint64_t thread = 0;
  std::string name;
};

struct StreamName {
  size_t process = 0;
  uint64_t handle = kNone;  // kNone: of calls that have no stream
};

// Of one process, on all its GPUs.
struct ProcessReport {
  bool ended = false;  // the log has its end mark
  bool runs = false;   // it has none, and the process is still there: what is live may yet be freed
  bool cut = false;    // the last row is not whole
  uint64_t rows = 0;
  uint64_t allocations = 0;
  uint64_t live = 0;
  uint64_t peak = 0;
  uint64_t refusals = 0;
};

struct Report {
  std::vector<ProcessLog> logs;
  std::vector<StackFile> stacks;  // by process
  std::vector<ProcessReport> processes;
  std::vector<GpuReport> gpus;
  // What the numbers of groups stand for.
  std::vector<StackKey> places;
  std::vector<ThreadName> threads;
  std::vector<StreamName> streams;
  std::vector<std::string> kinds;
  std::vector<std::string> tags;     // 0: none
  std::vector<std::string> queries;  // 0: none
  std::vector<StackTime> time;       // by place
  std::vector<Saving> savings;       // by place of the stack that allocated
  Saving saving;                     // of all
  std::array<SizeClass, 65> sizes{};
  std::array<LifetimeClass, 16> lifetimes{};
  uint64_t rows = 0;
  uint64_t lost = 0;
  uint64_t empty_lines = 0;
  uint64_t unfinished_rows = 0;
  uint64_t left_out = 0;  // allocations without rows, as the process counted them at its exit
  uint64_t left_out_bytes = 0;
  uint64_t switches = 0;  // `xlog log on` and `off`
  uint64_t off_ns = 0;    // between them
  uint64_t foreign_rows = 0;
  uint64_t foreign_frees = 0;
  uint64_t ended_unseen = 0;
  uint64_t context_destroyed = 0;
  std::vector<GuardFinding> findings;
  std::vector<std::string> unhooked;  // functions that make memory and were handed out unhooked
  uint64_t first_time = 0;
  uint64_t last_time = 0;
  TimeSpan span;
  uint64_t call_ns = 0;
  uint64_t calls = 0;
  TimeSpan call_span;                       // from the begin of the first to the end of the last
  std::vector<std::string> problems;        // one line each: logs that cannot be read
  std::vector<std::string> notes;           // one line each: lines that are no rows, by file and number
  std::vector<std::string> contradictions;  // of the log with itself; at most a few
  uint64_t contradiction_count = 0;
  mutable std::vector<std::string> holder_names;  // by place; made when one is asked for

  [[nodiscard]] const Stack* stack(uint32_t place) const { return stacks[places[place].process].find(places[place].stack); }
  [[nodiscard]] const ProcessLog& log_of(uint32_t place) const { return logs[places[place].process]; }
};

struct AnalysisOptions {
  bool resolve = true;          // look names up on this machine where the log has none
  uint64_t until = UINT64_MAX;  // rows of later times are left out
  size_t snapshots = 8;         // moments at which who held the memory is taken down, in equal parts of the run
  Progress progress = {};       // told now and then
};

Report analyse(std::vector<ProcessLog> logs, const AnalysisOptions& options);

// The name of a group, for people: "thread 4711 (loader)" and so on.
std::string label(const Report& report, By what, size_t number);

// What holds a stack's memory, in one line that no other stack of the report has (holder_names.h).
const std::string& holder_name(const Report& report, uint32_t place);

}  // namespace xlog::tools
