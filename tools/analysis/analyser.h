// The pass itself: keeps the live blocks, and tells a Report what begins and ends.
#pragma once

#include <string_view>
#include <unordered_map>

#include "tools/analysis/analysis.h"
#include "tools/analysis/block_map.h"
#include "tools/analysis/numbering.h"
#include "tools/analysis/self_check.h"

namespace xlog::tools {

class Analyser {
 public:
  Analyser(Report& report, const AnalysisOptions& options);
  void run();

 private:
  // What is known of one process on one GPU.
  struct OnGpu {
    uint32_t gpu = 0;  // place in Report::gpus
    AddressMap addresses;
    SavingModel model;
  };
  // What is known of one process.
  struct Process {
    OnGpu& on_gpu(uint32_t gpu);

    BlockMap blocks;
    BlockMap before_off;                             // what was live when the log went off, once it is on
    std::unordered_map<uint64_t, LiveBlock> unseen;  // replaced at their address: their end must be the next row about it
    std::vector<int> gpu_of;                         // by its own ordinal: place in Report::gpus
    std::vector<OnGpu> on;                           // the GPUs that it uses
    std::vector<signed char> is_exit;                // by place of a stack: 1 yes, 0 no, -1 not asked
    uint64_t off_since = 0;                          // its log is off; 0: it is on
    uint32_t only_thread = UINT32_MAX;               // while it has one
    bool is_simple = true;                           // one thread, and never switched
    bool switched = false;                           // its log was off at some time
    bool exit_begun = false;
    bool gone = false;       // ended, and its memory with it: `blocks` is what it never freed
    uint64_t last_time = 0;  // of its rows
  };

  void expect(size_t process, const RowReader& rows) const;
  void take(size_t process, const Event& event);
  void take_mark(size_t process, const Event& event);
  void allocate(size_t process, const Event& event);
  void end(size_t process, const Event& event);
  void end_unseen(size_t process, const Event& event);
  void fail(size_t process, const Event& event);
  void switch_log(size_t process, const Event& event);
  void look(size_t process, const Event& event);
  void weigh(size_t process, const Event& event, LiveBlock& block) const;
  void find_groups(size_t process, const Event& event, GpuReport& owner, LiveBlock& block);
  uint32_t thread_of(size_t process, const Event& event);
  bool go_on(size_t process, const Event& event);
  void add(size_t process, const LiveBlock& block, uint64_t time, bool made);
  void release(size_t process, const LiveBlock& block, bool at_exit);
  void end_process(size_t process);
  void end_processes_until(uint64_t time, const LogMerge& logs);
  void count_what_is_left();
  void note_life(size_t process, const LiveBlock& block, const Event& event);
  void save(uint32_t place, const Saving& saving);
  bool frees_at_exit(size_t process, uint32_t place);
  void check_ledger(size_t process, const Event& event, uint64_t live);
  GpuReport* gpu(size_t process, const Event& event);
  int find_gpu(size_t process, uint64_t ordinal);
  GpuReport* outside(std::string_view kind);
  void take_snapshots(uint64_t time);
  [[nodiscard]] Holes holes_on(uint32_t gpu, bool at_the_end) const;
  void finish(const LogMerge& logs);
  void find_growth(GpuReport& gpu) const;

  template <class Change>
  void for_groups(const LiveBlock& block, GpuReport& owner, Change change) {
    for (size_t i = 0; i < kDimensions; ++i) {
      change(touch(owner.groups[i].at_place(block.groups[i]), owner.peak_epoch));
    }
  }
  template <class Value>
  static Value& at(std::vector<Value>& values, size_t i) {
    if (values.size() <= i) {
      values.resize(i + 1);
    }
    return values[i];
  }

  Report& report_;
  const AnalysisOptions& options_;
  std::vector<Process> processes_;
  Places places_;
  ProcessNumbers threads_;
  ProcessNumbers streams_;
  Names kinds_;
  Names tags_;
  Names queries_;
  SelfCheck check_;
  std::vector<uint64_t> thread_allocations_;  // by thread number
  uint64_t next_snapshot_ = UINT64_MAX;       // its time
  size_t snapshot_ = 0;
  int host_ = -1;  // places in Report::gpus of what is no GPU's
  int import_ = -1;
};

}  // namespace xlog::tools
