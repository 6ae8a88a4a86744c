// One pass over the logs of a run, in time order: what a report is made from. Memory grows with live blocks and stacks,
// not with rows.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "runtime/record/event.h"
#include "tools/analysis/savings.h"
#include "tools/log/log_set.h"
#include "tools/log/stacks.h"

namespace xlog::tools {

// Running totals of one group of allocations (a stack, a thread, a kind) on one GPU. `at_peak` is what the group held
// when its GPU was at its highest: taken down lazily, at the first change after each new peak.
struct Group {
  uint64_t allocations = 0;
  uint64_t bytes = 0;
  uint64_t live = 0;
  uint64_t live_blocks = 0;
  uint64_t at_peak = 0;
  uint64_t blocks_at_peak = 0;
  uint64_t peak_epoch = 0;
  uint64_t freed_at_exit = 0;
  uint64_t freed_at_exit_blocks = 0;
  uint64_t failures = 0;
};

struct StackKey {
  size_t process = 0;
  uint64_t stack = kNone;
  auto operator<=>(const StackKey&) const = default;
};
struct StackKeyHash {
  size_t operator()(const StackKey& key) const { return key.stack * 0x9E3779B97F4A7C15ULL ^ key.process; }
};
using StackGroups = std::unordered_map<StackKey, Group, StackKeyHash>;

struct Holder {
  StackKey where;
  uint64_t bytes = 0;
  uint64_t blocks = 0;
};

struct Refusal {
  size_t process = 0;
  uint64_t time = 0;
  uint64_t requested = 0;
  uint64_t live = 0;
  uint64_t stack = kNone;
  std::string result;
  std::string message;  // begins "out of budget" when the limit refused
  std::vector<Holder> holders;
};

// What the driver said that it has in use on a GPU, at one moment, and what the log's blocks came to then.
struct DriverLook {
  uint64_t used = 0;
  uint64_t counted = 0;
  uint64_t pool_idle = 0;  // of the default pool: reserved and not in a block
  [[nodiscard]] uint64_t beyond() const { return used > counted ? used - counted : 0; }
};

// One GPU; or memory that is no GPU's: pinned host memory, and what was imported.
struct GpuReport {
  std::string key;  // UUID, or the ordinal; the kind of memory that is no GPU's
  GpuInfo info;
  uint64_t ordinal = 0;
  uint64_t live = 0;
  uint64_t live_blocks = 0;
  uint64_t peak = 0;
  uint64_t peak_time = 0;
  uint64_t peak_epoch = 0;
  uint64_t allocations = 0;
  uint64_t failed = 0;
  uint64_t refusals = 0;
  StackGroups stacks;
  std::map<std::pair<size_t, uint64_t>, Group> threads;  // process, thread id
  std::map<std::string, Group> kinds;
  std::map<std::string, Group> tags;     // of the blocks that have one
  std::map<std::string, Group> queries;  // by query_id, the same
  std::vector<Refusal> refused;          // the first and the last few
  uint64_t looks = 0;
  DriverLook first_look;
  DriverLook most_look;  // when the driver had most in use

  [[nodiscard]] bool is_gpu() const { return ordinal != kNone; }
};

// What the guard has found; `where` allocated the block.
struct GuardFinding {
  std::string text;
  std::string found_by;
  uint64_t time = 0;
  StackKey where;
};

struct StackTime {
  uint64_t calls = 0;
  uint64_t ns = 0;
};

struct Report {
  std::vector<ProcessLog> logs;
  std::vector<StackFile> stacks;  // by process
  std::vector<GpuReport> gpus;
  std::unordered_map<StackKey, StackTime, StackKeyHash> time;
  std::unordered_map<StackKey, Saving, StackKeyHash> savings;  // by the stack that allocated
  Saving saving;                                               // of all
  std::map<std::pair<size_t, uint64_t>, std::string> thread_names;
  std::array<uint64_t, 65> sizes{};  // allocations of [2^(i-1), 2^i) bytes
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
  uint64_t call_ns = 0;
  uint64_t calls = 0;
  std::vector<bool> ended;                  // by process: the log has its end mark
  std::vector<bool> cut;                    // by process: the last row is not whole
  std::vector<std::string> problems;        // one line each
  std::vector<std::string> contradictions;  // of the log with itself; at most a few
  uint64_t contradiction_count = 0;
};

struct AnalysisOptions {
  bool resolve = true;  // look names up on this machine where the log has none
};

Report analyse(std::vector<ProcessLog> logs, const AnalysisOptions& options);

// The largest `count` by `value`, descending; groups whose value is 0 are left out.
std::vector<Holder> largest(const StackGroups& groups, uint64_t Group::*bytes, uint64_t Group::*blocks, size_t count);

}  // namespace xlog::tools
