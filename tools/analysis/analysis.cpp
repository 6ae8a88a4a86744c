#include "tools/analysis/analysis.h"

#include <algorithm>
#include <charconv>
#include <memory>

#include "tools/analysis/block_map.h"
#include "tools/log/log_source.h"
#include "tools/log/names.h"
#include "tools/report/format.h"

namespace xlog::tools {

namespace {

constexpr size_t kRefusalsKept = 4;  // the first ones, and as many of the last
constexpr size_t kHolders = 10;

// A group's figures at its GPU's peak are those from before its first change after the peak.
Group& touch(Group& group, const GpuReport& gpu) {
  if (group.peak_epoch != gpu.peak_epoch) {
    group.at_peak = group.live;
    group.blocks_at_peak = group.live_blocks;
    group.peak_epoch = gpu.peak_epoch;
  }
  return group;
}

// 0 where the word is missing.
uint64_t number_after(std::string_view text, std::string_view word) {
  size_t at = text.find(word);
  uint64_t value = 0;
  if (at != text.npos) {
    std::from_chars(text.data() + at + word.size(), text.data() + text.size(), value);
  }
  return value;
}

class Analyser {
 public:
  explicit Analyser(Report& report) : report_(report) {}

  void run() {
    size_t n = report_.logs.size();
    blocks_.resize(n);
    last_seq_.resize(n, 0);
    missing_seqs_.resize(n, 0);
    threads_seen_.resize(n);
    off_since_.resize(n);
    switched_.resize(n);
    exit_begun_.resize(n, false);
    report_.ended.resize(n, false);
    report_.cut.resize(n, false);
    gpu_of_.resize(n);
    std::vector<std::unique_ptr<LogSource>> sources;
    for (const ProcessLog& log : report_.logs) {
      sources.push_back(std::make_unique<LogSource>(log));
      open(*sources.back(), log.csv);
    }
    if (n == 1) {
      for (LogSource& only = *sources[0]; only.alive(); only.advance()) {
        take(0, only.event());
      }
    } else {
      merge(sources);
    }
    for (size_t i = 0; i < n; ++i) {
      const RowReader& reader = sources[i]->reader();
      report_.empty_lines += reader.empty_lines();
      report_.unfinished_rows += reader.unfinished_rows();
      if (missing_seqs_[i] != 0 && reader.unfinished_rows() == 0) {  // no place stands for them
        Event last;
        last.seq = last_seq_[i];
        contradict(i, last, plural(missing_seqs_[i], "row") + " missing before it");
      }
      report_.foreign_rows += reader.foreign_rows();
      report_.cut[i] = reader.cut();
    }
    // Killed, a process may have had threads that were counted in live_bytes and had no row yet.
    if (n == 1 && threads_seen_[0].size() == 1 && report_.ended[0]) {
      for (const auto& [event, what] : wrong_live_) {
        contradict(0, event, what);
      }
    }
    std::stable_partition(report_.gpus.begin(), report_.gpus.end(), [](const GpuReport& gpu) { return gpu.is_gpu(); });
    for (GpuReport& gpu : report_.gpus) {
      for (auto& [key, group] : gpu.stacks) {
        touch(group, gpu);
      }
      for (auto& [key, group] : gpu.threads) {
        touch(group, gpu);
      }
      for (auto* groups : {&gpu.kinds, &gpu.tags, &gpu.queries}) {
        for (auto& [key, group] : *groups) {
          touch(group, gpu);
        }
      }
    }
  }

 private:
  void open(LogSource& source, const std::string& path) {
    if (!source.file().error().empty()) {
      report_.problems.push_back(source.file().error());
    } else if (!source.reader().good()) {
      report_.problems.push_back(path + ": " + source.reader().error());
    } else {
      source.advance();
    }
  }

  // Rows of several processes by time; within one, its own order.
  void merge(std::vector<std::unique_ptr<LogSource>>& sources) {
    auto later = [&](size_t a, size_t b) { return sources[a]->event().time > sources[b]->event().time; };
    std::vector<size_t> heap;
    for (size_t i = 0; i < sources.size(); ++i) {
      if (sources[i]->alive()) {
        heap.push_back(i);
      }
    }
    std::make_heap(heap.begin(), heap.end(), later);
    while (!heap.empty()) {
      std::pop_heap(heap.begin(), heap.end(), later);
      size_t i = heap.back();
      take(i, sources[i]->event());
      if (sources[i]->advance()) {
        std::push_heap(heap.begin(), heap.end(), later);
      } else {
        heap.pop_back();
      }
    }
  }

  // GPUs are told apart by UUID: two processes may number them differently.
  GpuReport* gpu(size_t process, const Event& event) {
    uint64_t ordinal = event.device;
    if (ordinal == kNone && (event.kind == "host" || event.kind == "import")) {
      return outside(event.kind);
    }
    if (ordinal == kNone || ordinal > 4096) {
      return nullptr;
    }
    auto& known = gpu_of_[process];
    if (known.size() <= ordinal) {
      known.resize(ordinal + 1, -1);
    }
    if (known[ordinal] < 0) {
      const auto& gpus = report_.logs[process].gpus;
      auto info = gpus.find(ordinal);
      std::string key = info != gpus.end() && !info->second.uuid.empty() ? info->second.uuid : std::to_string(ordinal);
      auto found = std::find_if(report_.gpus.begin(), report_.gpus.end(), [&](const GpuReport& g) { return g.key == key; });
      if (found == report_.gpus.end()) {
        GpuReport fresh;
        fresh.key = key;
        fresh.ordinal = ordinal;
        if (info != gpus.end()) {
          fresh.info = info->second;
        }
        report_.gpus.push_back(std::move(fresh));
        found = std::prev(report_.gpus.end());
      }
      known[ordinal] = static_cast<int>(found - report_.gpus.begin());
    }
    return &report_.gpus[static_cast<size_t>(known[ordinal])];
  }

  GpuReport* outside(std::string_view kind) {
    auto found = std::find_if(report_.gpus.begin(), report_.gpus.end(), [&](const GpuReport& g) { return g.key == kind; });
    if (found == report_.gpus.end()) {
      GpuReport fresh;
      fresh.key = kind;
      fresh.ordinal = kNone;
      report_.gpus.push_back(std::move(fresh));
      found = std::prev(report_.gpus.end());
    }
    return &*found;
  }

  // What the driver had in use beside the blocks; the first look, and the one at its highest.
  void look(size_t process, const Event& event) {
    GpuReport* owner = gpu(process, event);
    if (owner == nullptr || event.bytes == kNone || event.live_bytes == kNone) {
      return;
    }
    // Of all processes of the run; where rows are left out, what this one counted.
    const ProcessLog& log = report_.logs[process];
    DriverLook seen{event.bytes, log.sample + log.least != 0 ? event.live_bytes : owner->live, 0};
    uint64_t reserved = number_after(event.message, "reserved ");
    uint64_t used = number_after(event.message, "used ");
    seen.pool_idle = reserved > used ? reserved - used : 0;
    if (owner->looks++ == 0) {
      owner->first_look = seen;
    }
    if (seen.used >= owner->most_look.used) {
      owner->most_look = seen;
    }
  }

  uint32_t kind(std::string_view name) {
    for (size_t i = 0; i < kind_names_.size(); ++i) {
      if (kind_names_[i] == name) {
        return static_cast<uint32_t>(i);
      }
    }
    kind_names_.emplace_back(name);
    return static_cast<uint32_t>(kind_names_.size() - 1);
  }

  void contradict(size_t process, const Event& event, const std::string& what) {
    ++report_.contradiction_count;
    if (report_.contradictions.size() < 10) {
      report_.contradictions.push_back(report_.logs[process].csv + ": seq " + std::to_string(event.seq) + ": " + what);
    }
  }

  // An end whose beginning may have had no row.
  void unless_switched(size_t process, const Event& event, const std::string& what) {
    if (!switched_[process]) {
      contradict(process, event, what);
    }
  }

  void take(size_t process, Event event) {
    event.stack_id = report_.stacks[process].canonical(event.stack_id);
    if (event.action == action::lost) {
      report_.lost += event.bytes != kNone ? event.bytes : 0;
      return;
    }
    ++report_.rows;
    if (report_.first_time == 0 || event.time < report_.first_time) {
      report_.first_time = event.time;
    }
    report_.last_time = std::max(report_.last_time, event.time);
    if (event.seq != kNone && event.seq != 0) {
      if (event.seq <= last_seq_[process]) {
        contradict(process, event, "follows seq " + std::to_string(last_seq_[process]));
      } else {
        missing_seqs_[process] += event.seq - last_seq_[process] - 1;
      }
      last_seq_[process] = event.seq;
    }
    if (event.action == action::log_on || event.action == action::log_off) {
      switch_log(process, event);
      return;
    }
    if (event.action == action::exit) {
      report_.ended[process] = true;
      report_.off_ns += off_since_[process] != 0 ? event.time - off_since_[process] : 0;
      exit_begun_[process] = true;
      return;
    }
    if (event.action == action::retracted) {
      return;
    }
    if (event.action == action::left_out) {
      report_.left_out += number_after(event.message, "allocations ");
      report_.left_out_bytes += event.bytes != kNone ? event.bytes : 0;
      return;
    }
    if (event.action == action::map || event.action == action::unmap) {
      return;
    }
    if (event.action == action::driver_used) {
      look(process, event);
      return;
    }
    if (event.action == action::finding) {
      report_.findings.push_back({std::string(event.message), std::string(event.api), event.time, {process, event.stack_id}});
      return;
    }
    if (event.action == action::unhooked) {
      if (std::find(report_.unhooked.begin(), report_.unhooked.end(), event.message) == report_.unhooked.end()) {
        report_.unhooked.emplace_back(event.message);
      }
      return;
    }
    if (off_since_[process] != 0) {
      return;  // of another thread, on its way when the log went off
    }
    if (event.elapsed_ns != kNone) {
      ++report_.calls;
      report_.call_ns += event.elapsed_ns;
      StackTime& time = report_.time[{process, event.stack_id}];
      ++time.calls;
      time.ns += event.elapsed_ns;
    }
    if (event.action == action::reap_pending) {
      return;
    }
    if (event.action == action::allocate || event.action == action::live) {
      allocate(process, event);
    } else {
      end(process, event);
    }
  }

  // What is live is told anew when the log comes on.
  void switch_log(size_t process, const Event& event) {
    blocks_[process].each([&](const LiveBlock& block) { release(process, block, false); });
    blocks_[process] = BlockMap();
    unseen_.clear();
    switched_[process] = true;
    if (event.action == action::log_off) {
      off_since_[process] = event.time;
    } else {
      report_.off_ns += off_since_[process] != 0 ? event.time - off_since_[process] : 0;
      off_since_[process] = 0;
    }
    ++report_.switches;
  }

  void allocate(size_t process, const Event& event) {
    GpuReport* owner = gpu(process, event);
    if (event.result != "ok") {
      fail(process, event, owner);
      return;
    }
    if (owner == nullptr || event.ptr == kNone || event.bytes == kNone) {
      contradict(process, event, "an allocation without device, address or size");
      return;
    }
    BlockMap& blocks = blocks_[process];
    bool made = event.action == action::allocate;
    LiveBlock* known = made ? nullptr : blocks.find(event.ptr);
    if (known != nullptr && known->generation == event.generation) {
      return;  // made while the log came on: it has both rows
    }
    if (LiveBlock* old = blocks.find(event.ptr)) {
      unseen_[event.ptr] = *old;  // its end must be the next row about it
      release(process, *old, false);
      blocks.erase(old);
    }
    LiveBlock block{event.ptr,
                    event.bytes,
                    event.generation,
                    event.stack_id,
                    event.time,
                    event.thread,
                    static_cast<uint32_t>(owner - report_.gpus.data()),
                    kind(event.kind),
                    tags_.number(event.tag),
                    queries_.number(event.query_id)};
    weigh(process, event, block);
    blocks.insert(block);
    uint64_t made_now = made ? block.blocks : 0;
    if (event.api == "cuMemAlloc_v2" && event.elapsed_ns != kNone && report_.logs[process].sample == 0) {
      save({process, block.stack}, models_[{process, block.gpu}].allocation(block.bytes, event.elapsed_ns));
    }
    remember_thread(process, event);
    owner->allocations += made_now;
    report_.sizes[event.bytes == 0 ? 0 : 64 - static_cast<size_t>(__builtin_clzll(event.bytes))] += made_now;
    owner->live += block.stands_for;
    owner->live_blocks += block.blocks;
    for_groups(process, block, *owner, [&](Group& group) {
      group.allocations += made_now;
      group.bytes += made ? block.stands_for : 0;
      group.live += block.stands_for;
      group.live_blocks += block.blocks;
    });
    if (owner->live > owner->peak) {
      owner->peak = owner->live;
      owner->peak_time = event.time;
      ++owner->peak_epoch;
    }
    check_live(process, event, *owner);
  }

  // What a row of a sample stands for: a block of `bytes` had the chance bytes / sample. The blocks are a whole number that is
  // right on average, by the row's own number, so that a log always reads the same.
  void weigh(size_t process, const Event& event, LiveBlock& block) {
    uint64_t sample = report_.logs[process].sample;
    block.stands_for = std::max(block.bytes, block.bytes != 0 ? sample : 0);
    if (block.bytes != 0 && block.bytes < sample) {
      uint64_t rest = sample % block.bytes;
      uint64_t draw = (event.seq * 0x9E3779B97F4A7C15ULL >> 11) % block.bytes;
      block.blocks = sample / block.bytes + (draw < rest ? 1 : 0);
    }
  }

  template <class Change>
  void for_groups(size_t process, const LiveBlock& block, GpuReport& owner, Change change) {
    change(touch(owner.stacks[{process, block.stack}], owner));
    change(touch(owner.threads[{process, block.thread}], owner));
    change(touch(owner.kinds[kind_names_[block.kind]], owner));
    if (block.tag != 0) {
      change(touch(owner.tags[tags_.name(block.tag)], owner));
    }
    if (block.query != 0) {
      change(touch(owner.queries[queries_.name(block.query)], owner));
    }
  }

  void release(size_t process, const LiveBlock& block, bool at_exit) {
    GpuReport& owner = report_.gpus[block.gpu];
    owner.live -= block.stands_for;
    owner.live_blocks -= block.blocks;
    for_groups(process, block, owner, [&](Group& group) {
      group.live -= block.stands_for;
      group.live_blocks -= block.blocks;
      if (at_exit) {
        group.freed_at_exit += block.stands_for;
        group.freed_at_exit_blocks += block.blocks;
      }
    });
  }

  void end(size_t process, const Event& event) {
    if (event.result != "ok") {
      return;
    }
    if (event.action == action::ended_unseen) {
      ++report_.ended_unseen;
      auto old = unseen_.find(event.ptr);
      if (old == unseen_.end() || old->second.generation != event.generation) {
        unless_switched(process, event, "the end of a block that was not replaced");
      } else {
        unseen_.erase(old);
      }
      return;
    }
    if (event.kind == "foreign") {
      ++report_.foreign_frees;
      return;
    }
    report_.context_destroyed += event.action == action::context_destroyed ? 1 : 0;
    LiveBlock* block = blocks_[process].find(event.ptr);
    if (block == nullptr || block->generation != event.generation) {
      unless_switched(process, event, "the end of a block that is not live");
      return;
    }
    bool at_exit = exit_begun_[process];
    if (!at_exit && event.stack_id != kNone) {
      at_exit = frees_at_exit(process, event.stack_id);
    }
    GpuReport& owner = report_.gpus[block->gpu];
    if (event.api == "cuMemFree_v2" && event.kind == "plain" && event.elapsed_ns != kNone) {
      save({process, block->stack}, models_[{process, block->gpu}].free(block->bytes, event.elapsed_ns));
    }
    release(process, *block, at_exit);
    blocks_[process].erase(block);
    check_live(process, event, owner);
  }

  void save(const StackKey& where, const Saving& saving) {
    report_.savings[where].add(saving);
    report_.saving.add(saving);
  }

  bool frees_at_exit(size_t process, uint64_t stack) {
    auto [it, fresh] = exit_stacks_.try_emplace({process, stack}, false);
    if (fresh) {
      const Stack* found = report_.stacks[process].find(stack);
      it->second = found != nullptr && is_exit(*found);
    }
    return it->second;
  }

  void remember_thread(size_t process, const Event& event) {
    auto& seen = threads_seen_[process];
    auto it = std::find(seen.begin(), seen.end(), event.thread);
    if (it == seen.end()) {
      seen.push_back(event.thread);
      report_.thread_names[{process, event.thread}] = event.thread_name;
    }
  }

  // In a process of one thread, which is known at the end, the ledger of each row is exact: with more, another's bytes count
  // before its row has its place.
  void check_live(size_t process, const Event& event, const GpuReport& owner) {
    bool simple = report_.logs.size() == 1 && report_.logs[0].sample + report_.logs[0].least == 0 && threads_seen_[process].size() == 1 &&
                  !switched_[process] && report_.ended_unseen == 0 && unseen_.empty();
    if (simple && event.live_bytes != kNone && event.live_bytes != owner.live && wrong_live_.size() < 10) {
      Event where;
      where.seq = event.seq;
      wrong_live_.emplace_back(where,
                               "live_bytes " + std::to_string(event.live_bytes) + ", the rows add up to " + std::to_string(owner.live));
    }
  }

  void fail(size_t process, const Event& event, GpuReport* owner) {
    if (owner == nullptr) {
      return;
    }
    ++owner->failed;
    if (event.result != "CUDA_ERROR_OUT_OF_MEMORY") {
      return;
    }
    ++owner->refusals;
    Refusal refusal;
    refusal.process = process;
    refusal.time = event.time;
    refusal.requested = event.bytes;
    refusal.live = owner->live;
    refusal.stack = event.stack_id;
    refusal.result = event.result;
    refusal.message = event.message;
    if (owner->refused.size() >= 2 * kRefusalsKept) {
      owner->refused.erase(owner->refused.begin() + kRefusalsKept);
    }
    // A program that asks again and again: the set is taken down for the first ones; later ones are counted, and the
    // last is taken down again when the memory in use has changed.
    bool take_down = owner->refused.size() < kRefusalsKept || owner->refused.back().live != refusal.live;
    if (take_down) {
      refusal.holders = largest(owner->stacks, &Group::live, &Group::live_blocks, kHolders);
    }
    owner->refused.push_back(std::move(refusal));
  }

  Report& report_;
  std::vector<BlockMap> blocks_;
  std::vector<uint64_t> last_seq_;
  std::vector<std::pair<Event, std::string>> wrong_live_;
  std::vector<uint64_t> missing_seqs_;  // numbers that no row has
  std::vector<std::vector<uint64_t>> threads_seen_;
  std::vector<uint64_t> off_since_;  // by process: since when its log is off; 0: it is on
  std::vector<bool> switched_;       // it was off at some time
  std::vector<bool> exit_begun_;
  std::vector<std::vector<int>> gpu_of_;
  std::vector<std::string> kind_names_;
  Names tags_;
  Names queries_;
  std::unordered_map<uint64_t, LiveBlock> unseen_;
  std::map<std::pair<size_t, uint32_t>, SavingModel> models_;  // by process and GPU
  std::unordered_map<StackKey, bool, StackKeyHash> exit_stacks_;
};

}  // namespace

std::vector<Holder> largest(const StackGroups& groups, uint64_t Group::*bytes, uint64_t Group::*blocks, size_t count) {
  std::vector<Holder> all;
  for (const auto& [where, group] : groups) {
    if (group.*blocks != 0) {
      all.push_back({where, group.*bytes, group.*blocks});
    }
  }
  auto larger = [](const Holder& a, const Holder& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.where < b.where; };
  size_t n = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<long>(n), all.end(), larger);
  all.resize(n);
  return all;
}

Report analyse(std::vector<ProcessLog> logs, const AnalysisOptions& options) {
  Report report;
  report.logs = std::move(logs);
  for (const ProcessLog& log : report.logs) {
    StackFile stacks;
    stacks.read(log.stem + ".stacks.csv");
    if (options.resolve) {
      stacks.resolve();
    }
    report.stacks.push_back(std::move(stacks));
  }
  Analyser(report).run();
  return report;
}

}  // namespace xlog::tools
