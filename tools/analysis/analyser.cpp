#include "tools/analysis/analyser.h"

#include <algorithm>
#include <charconv>

#include "tools/log/block_rows.h"

namespace xlog::tools {

namespace {

// 0 where the word is missing.
uint64_t number_after(std::string_view text, std::string_view word) {
  size_t at = text.find(word);
  uint64_t value = 0;
  if (at != text.npos) {
    std::from_chars(text.data() + at + word.size(), text.data() + text.size(), value);
  }
  return value;
}

}  // namespace

Analyser::Analyser(Report& report, const AnalysisOptions& options)
    : report_(report),
      options_(options),
      processes_(report.logs.size()),
      places_(report),
      threads_(report.logs.size()),
      streams_(report.logs.size()),
      check_(report) {
  report_.processes.resize(report.logs.size());
}

void Analyser::run() {
  constexpr uint64_t kTellEvery = 1 << 16;
  LogMerge logs(report_.logs, report_.problems);
  report_.span = logs.span();
  if (options_.snapshots != 0) {
    next_snapshot_ = report_.span.first + report_.span.length() / options_.snapshots;
  }
  size_t process = 0;
  uint64_t rows = 0;
  for (const Event* event = logs.next(process); event != nullptr; event = logs.next(process)) {
    expect(process, logs.source(process).reader());
    for (size_t each : logs.ended()) {
      if (options_.until == UINT64_MAX) {
        end_process(each);
      }
    }
    processes_[process].last_time = std::max(processes_[process].last_time, event->action == action::lost ? 0 : event->time);
    if (event->time <= options_.until) {
      take(process, *event);
    }
    if (++rows % kTellEvery == 0 && options_.progress) {
      logs.tell(options_.progress);
    }
  }
  finish(logs);
}

// Rows to come, which another core has parsed, and their blocks are fetched while others are worked on: a log of many live
// blocks is mostly waiting for memory.
void Analyser::expect(size_t process, const RowReader& rows) const {
  constexpr size_t kRow = 24;
  constexpr size_t kSlot = 16;
  constexpr size_t kBlock = 8;
  const BlockMap& blocks = processes_[process].blocks;
  if (const Event* row = rows.peek(kRow)) {
    prefetch_all(row);
  }
  if (const Event* row = rows.peek(kSlot)) {
    blocks.expect(row->ptr);
  }
  if (const Event* row = rows.peek(kBlock)) {
    blocks.expect_soon(row->ptr);
  }
}

void Analyser::take(size_t process, const Event& event) {
  if (event.action == action::lost) {
    report_.lost += event.bytes != kNone ? event.bytes : 0;
    return;
  }
  ++report_.rows;
  ++report_.processes[process].rows;
  if (report_.first_time == 0 || event.time < report_.first_time) {
    report_.first_time = event.time;
  }
  report_.last_time = std::max(report_.last_time, event.time);
  check_.follow_seq(process, event);
  if (event.time >= next_snapshot_) {
    take_snapshots(event.time);
  }
  bool begins = begins_block(event);
  bool ends = ends_block(event);
  if (!begins && !ends && event.action != action::reap_pending) {
    take_mark(process, event);
    return;
  }
  if (event.elapsed_ns != kNone) {
    ++report_.calls;
    report_.call_ns += event.elapsed_ns;
    // The row of an allocation is from its end, that of a free from its begin.
    uint64_t begin = begins ? event.time - std::min(event.time, event.elapsed_ns) : event.time;
    report_.call_span.add({begin, begin + event.elapsed_ns});
    StackTime& time = at(report_.time, places_.of(process, event.stack_id));
    ++time.calls;
    time.ns += event.elapsed_ns;
  }
  if (begins) {
    allocate(process, event);
  } else if (ends) {
    end(process, event);
  }
}

// Rows that are no call's.
void Analyser::take_mark(size_t process, const Event& event) {
  Process& own = processes_[process];
  if (event.action == action::log_on || event.action == action::log_off) {
    switch_log(process, event);
  } else if (event.action == action::exit) {
    report_.processes[process].ended = true;
    report_.off_ns += own.off_since != 0 ? event.time - own.off_since : 0;
    own.exit_begun = true;
  } else if (event.action == action::left_out) {
    report_.left_out += number_after(event.message, "allocations ");
    report_.left_out_bytes += event.bytes != kNone ? event.bytes : 0;
  } else if (event.action == action::driver_used) {
    look(process, event);
  } else if (event.action == action::finding) {
    report_.findings.push_back(
        {std::string(event.message), std::string(event.api), event.time, process, places_.of(process, event.stack_id)});
  } else if (event.action == action::unhooked) {
    if (std::find(report_.unhooked.begin(), report_.unhooked.end(), event.message) == report_.unhooked.end()) {
      report_.unhooked.emplace_back(event.message);
    }
  }
}

// What is live is told anew when the log comes on. Until then what was live when it went off is the best that is known.
void Analyser::switch_log(size_t process, const Event& event) {
  Process& own = processes_[process];
  own.switched = true;
  own.is_simple = false;
  if (event.action == action::log_off) {
    own.off_since = event.time;
  } else {
    own.blocks.each([&](const LiveBlock& block) {
      release(process, block, false);
      GpuReport& owner = report_.gpus[block.gpu];
      owner.timeline.note(report_.span, report_.last_time, owner.live);
    });
    own.before_off = std::move(own.blocks);
    own.blocks = BlockMap();
    own.unseen.clear();
    report_.off_ns += own.off_since != 0 ? event.time - own.off_since : 0;
    own.off_since = 0;
  }
  ++report_.switches;
}

// Its memory is the driver's again, and is counted as never freed.
void Analyser::end_process(size_t process) {
  Process& own = processes_[process];
  uint64_t time = std::max(report_.last_time, report_.logs[process].ended_ns);
  if (time >= next_snapshot_) {
    take_snapshots(time);
  }
  own.gone = true;
  own.blocks.each([&](const LiveBlock& block) {
    release(process, block, false);
    GpuReport& owner = report_.gpus[block.gpu];
    for_groups(block, owner, [&](Group& group) {
      group.left += block.stands_for;
      group.left_blocks += block.blocks;
    });
    owner.timeline.note(report_.span, time, owner.live);
  });
}

// What the driver had in use beside the blocks; the first look, and the one at its highest.
void Analyser::look(size_t process, const Event& event) {
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

// GPUs are told apart by UUID: two processes may number them differently.
GpuReport* Analyser::gpu(size_t process, const Event& event) {
  constexpr uint64_t kMostOrdinal = 4096;
  uint64_t ordinal = event.device;
  if (ordinal == kNone && (event.kind == "host" || event.kind == "import")) {
    return outside(event.kind);
  }
  if (ordinal == kNone || ordinal > kMostOrdinal) {
    return nullptr;
  }
  auto& known = processes_[process].gpu_of;
  if (known.size() <= ordinal) {
    known.resize(ordinal + 1, -1);
  }
  if (known[ordinal] < 0) {
    known[ordinal] = find_gpu(process, ordinal);
  }
  return &report_.gpus[static_cast<size_t>(known[ordinal])];
}

int Analyser::find_gpu(size_t process, uint64_t ordinal) {
  const auto& gpus = report_.logs[process].gpus;
  auto info = gpus.find(ordinal);
  std::string key = info != gpus.end() && !info->second.uuid.empty() ? info->second.uuid : std::to_string(ordinal);
  auto found = std::find_if(report_.gpus.begin(), report_.gpus.end(), [&](const GpuReport& g) { return g.key == key; });
  if (found == report_.gpus.end()) {
    GpuReport& fresh = report_.gpus.emplace_back();
    fresh.key = key;
    fresh.ordinal = ordinal;
    if (info != gpus.end()) {
      fresh.info = info->second;
    }
    return static_cast<int>(report_.gpus.size() - 1);
  }
  return static_cast<int>(found - report_.gpus.begin());
}

GpuReport* Analyser::outside(std::string_view kind) {
  int& place = kind == "host" ? host_ : import_;
  if (place < 0) {
    GpuReport& fresh = report_.gpus.emplace_back();
    fresh.key = kind;
    fresh.ordinal = kNone;
    place = static_cast<int>(report_.gpus.size() - 1);
  }
  return &report_.gpus[static_cast<size_t>(place)];
}

Analyser::OnGpu& Analyser::Process::on_gpu(uint32_t gpu) {
  for (OnGpu& each : on) {
    if (each.gpu == gpu) {
      return each;
    }
  }
  OnGpu& fresh = on.emplace_back();
  fresh.gpu = gpu;
  return fresh;
}

}  // namespace xlog::tools
