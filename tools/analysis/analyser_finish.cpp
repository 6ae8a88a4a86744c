// What is taken down at moments of a run, and at its end.
#include <algorithm>

#include "tools/analysis/analyser.h"

namespace xlog::tools {

namespace {

constexpr size_t kSnapshotPlaces = 300;

Snapshot snapshot_of(const GpuReport& gpu, uint64_t time) {
  Snapshot out{.time = time, .live = gpu.live, .places = {}};
  for (const Holder& each : largest(gpu.by(By::stack), &Group::live, &Group::live_blocks, kSnapshotPlaces)) {
    out.places.emplace_back(each.place, each.bytes);
  }
  return out;
}

}  // namespace

// Before the first row at or behind each moment: what is live then.
void Analyser::take_snapshots(uint64_t time) {
  uint64_t length = report_.span.length();
  while (snapshot_ < options_.snapshots && time >= next_snapshot_) {
    for (GpuReport& gpu : report_.gpus) {
      gpu.snapshots.resize(snapshot_);  // a GPU that was met later had nothing
      gpu.snapshots.push_back(snapshot_of(gpu, next_snapshot_));
    }
    ++snapshot_;
    auto scaled = static_cast<unsigned __int128>(length) * (snapshot_ + 1) / options_.snapshots;
    next_snapshot_ = snapshot_ < options_.snapshots ? report_.span.first + static_cast<uint64_t>(scaled) : UINT64_MAX;
  }
}

// At the end: of each process at its own.
Holes Analyser::holes_on(uint32_t gpu, bool at_the_end) const {
  Holes sum;
  for (const Process& process : processes_) {
    if (process.gone && !at_the_end) {
      continue;
    }
    auto on = std::find_if(process.on.begin(), process.on.end(), [gpu](const OnGpu& each) { return each.gpu == gpu; });
    if (on == process.on.end()) {
      continue;
    }
    std::vector<std::pair<uint64_t, uint64_t>> live;
    process.blocks.each([&](const LiveBlock& block) {
      if (block.gpu == gpu && block.has_address) {
        live.emplace_back(block.ptr, block.bytes);
      }
    });
    Holes own = on->addresses.holes(live);
    sum.known = sum.known || own.known;
    sum.count += own.count;
    sum.bytes += own.bytes;
    sum.largest = std::max(sum.largest, own.largest);
  }
  return sum;
}

// Over the second half of the run, but for its last eighth, in which a program frees what it has.
void Analyser::find_growth(GpuReport& gpu) const {
  constexpr size_t kParts = 8;
  constexpr size_t kFirst = 3;
  constexpr size_t kLast = 7;
  size_t step = options_.snapshots / kParts;
  if (step == 0 || options_.snapshots % kParts != 0 || gpu.snapshots.size() < options_.snapshots) {
    return;
  }
  auto at = [&](size_t part, uint32_t place) {
    for (const auto& [each, bytes] : gpu.snapshots[part * step - 1].places) {
      if (each == place) {
        return bytes;
      }
    }
    return uint64_t{0};
  };
  for (const auto& [place, bytes] : gpu.snapshots[kLast * step - 1].places) {
    uint64_t from = at(kFirst, place);
    uint64_t before = from;
    size_t grown = 0;
    bool shrunk = false;
    for (size_t part = kFirst + 1; part <= kLast; ++part) {
      uint64_t now = at(part, place);
      grown += now > before ? 1 : 0;
      shrunk = shrunk || now < before;
      before = now;
    }
    if (!shrunk && grown >= 3 && bytes >= from + from / 4) {
      gpu.growing.push_back({place, from, bytes});
    }
  }
}

// At a moment that was asked for, what had ended by then.
void Analyser::end_processes_until(uint64_t time, const LogMerge& logs) {
  for (size_t i = 0; i < processes_.size(); ++i) {
    if (std::max(processes_[i].last_time, report_.logs[i].ended_ns) < time && !logs.still_runs(i)) {
      end_process(i);
    }
  }
}

// What was never freed, of all processes: of those that are there, what is live.
void Analyser::count_what_is_left() {
  for (GpuReport& gpu : report_.gpus) {
    for (Groups& groups : gpu.groups) {
      groups.each([&](Group& group) {
        group.live += group.left;
        group.live_blocks += group.left_blocks;
      });
    }
    const auto& by_process = gpu.by(By::process).entries();
    for (const auto& [process, group] : by_process) {
      gpu.live += group.left;
      gpu.live_blocks += group.left_blocks;
      report_.processes[process].live += gpu.is_gpu() ? group.left : 0;
    }
  }
}

void Analyser::finish(const LogMerge& logs) {
  for (size_t i = 0; i < report_.logs.size(); ++i) {
    const RowReader& reader = logs.source(i).reader();
    ProcessReport& process = report_.processes[i];
    report_.empty_lines += reader.empty_lines();
    report_.unfinished_rows += reader.unfinished_rows();
    report_.foreign_rows += reader.foreign_rows();
    for (uint64_t line : reader.foreign_lines()) {
      report_.notes.push_back(report_.logs[i].csv + ':' + std::to_string(line) + ": not a row of this log");
    }
    process.cut = reader.cut();
    process.runs = logs.still_runs(i);
    process.ended = process.ended || reader.format().dialect() != Dialect::xlog;  // RMM's logs have no end mark
    // Killed, a process may have had threads that were counted in live_bytes and had no row yet.
    bool exact = report_.logs.size() == 1 && processes_[i].is_simple && process.ended;
    check_.finish(i, reader.unfinished_rows() != 0 || options_.until != UINT64_MAX, exact);
  }
  if (options_.until != UINT64_MAX) {
    end_processes_until(options_.until, logs);
  }
  if (next_snapshot_ != UINT64_MAX) {
    take_snapshots(UINT64_MAX - 1);
  }
  for (size_t i = 0; i < report_.gpus.size(); ++i) {
    GpuReport& gpu = report_.gpus[i];
    gpu.holes = holes_on(static_cast<uint32_t>(i), true);
    gpu.timeline.finish();
    for (Groups& groups : gpu.groups) {
      groups.each([&](Group& group) { touch(group, gpu.peak_epoch); });
      groups.sort();
    }
    find_growth(gpu);
  }
  if (options_.until == UINT64_MAX) {
    count_what_is_left();
  }
  std::stable_partition(report_.gpus.begin(), report_.gpus.end(), [](const GpuReport& gpu) { return gpu.is_gpu(); });
  report_.time.resize(report_.places.size());
  report_.savings.resize(report_.places.size());
  report_.kinds = kinds_.names();
  report_.tags = tags_.names();
  report_.queries = queries_.names();
}

Report analyse(std::vector<ProcessLog> logs, const AnalysisOptions& options) {
  Report report;
  report.logs = std::move(logs);
  auto frames = std::make_shared<FrameTable>();
  for (const ProcessLog& log : report.logs) {
    StackFile& stacks = report.stacks.emplace_back(frames);
    stacks.read(log.stem + ".stacks.csv");
  }
  if (options.resolve) {
    frames->resolve();
  }
  Analyser(report, options).run();
  return report;
}

}  // namespace xlog::tools
