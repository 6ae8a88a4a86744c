#include "tools/analysis/simulate.h"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "tools/analysis/numbering.h"
#include "tools/analysis/taken.h"
#include "tools/log/block_rows.h"

namespace xlog::tools {

namespace {

constexpr uint64_t kPage = 2 << 20;
constexpr size_t kHolders = 10;

struct SimulatedBlock {
  uint64_t ptr = 0;
  uint64_t bytes = 0;
  uint64_t generation = 0;
  uint64_t stream = kNone;
  uint32_t process = 0;
  uint32_t gpu = 0;
  uint32_t place = 0;
  bool on_pages = false;  // shares pages with others
};

// What stands on the pages of one GPU.
class Pages {
 public:
  // Bytes that the block would add.
  [[nodiscard]] uint64_t cost(const SimulatedBlock& block, std::string_view kind) const {
    if (!block.on_pages) {
      return taken_by(kind, block.bytes);
    }
    uint64_t cost = 0;
    each(block, [&](uint64_t page) { cost += counts_.contains(page) ? 0 : kPage; });
    return cost;
  }
  void add(const SimulatedBlock& block) {
    each(block, [&](uint64_t page) { ++counts_[page]; });
  }
  // Bytes that are free now.
  uint64_t remove(const SimulatedBlock& block) {
    uint64_t freed = 0;
    each(block, [&](uint64_t page) {
      auto it = counts_.find(page);
      if (it != counts_.end() && --it->second == 0) {
        counts_.erase(it);
        freed += kPage;
      }
    });
    return freed;
  }

 private:
  static uint64_t last(const SimulatedBlock& block) { return (block.ptr + std::max<uint64_t>(block.bytes, 1) - 1) / kPage; }
  // Each process has addresses of its own: the same page of two is two.
  template <class Visit>
  static void each(const SimulatedBlock& block, Visit visit) {
    constexpr unsigned kPageBits = 43;
    for (uint64_t page = block.ptr / kPage; page <= last(block); ++page) {
      visit(page | uint64_t{block.process} << kPageBits);
    }
  }
  std::unordered_map<uint64_t, uint32_t> counts_;
};

class Simulator {
 public:
  Simulator(Simulation& out, const SimulateOptions& options)
      : out_(out), options_(options), places_(out.report), live_(out.report.logs.size()) {}

  void run() {
    LogMerge logs(out_.report.logs, out_.report.problems);
    size_t process = 0;
    uint64_t rows = 0;
    for (const Event* event = logs.next(process); event != nullptr; event = logs.next(process)) {
      if (rows++ == 0) {
        out_.report.first_time = logs.span().first;
      }
      for (size_t each : logs.ended()) {
        forget(each);
      }
      take(process, *event);
      if (rows % 65536 == 0 && options_.progress) {
        logs.tell(options_.progress);
      }
    }
  }

 private:
  struct Gpu {
    uint64_t used = 0;                                          // by live blocks, those included that would have been refused
    uint64_t granted = 0;                                       // by live blocks that were not
    uint64_t returning = 0;                                     // freed in stream order, and not known to be done
    std::map<std::pair<size_t, uint64_t>, uint64_t> by_stream;  // the same, by process and stream
    Pages pages;
    Groups holders;  // by place, of what was granted
  };

  void take(size_t process, const Event& event) {
    if (event.action == action::log_on) {
      forget(process);  // what is live is told from here on
    } else if (event.action == action::driver_used) {
      look(process, event);
    } else if (event.result == "ok" && begins_block(event)) {
      allocate(process, event);
    } else if (event.result == "ok" && ends_block(event)) {
      end(process, event);
    }
  }

  void look(size_t process, const Event& event) {
    if (event.device == kNone || event.bytes == kNone || event.live_bytes == kNone) {
      return;
    }
    SimulatedGpu& gpu = out_.gpus[number(process, event)];
    if (options_.context_bytes == UINT64_MAX && gpu.context == 0 && event.bytes > event.live_bytes) {
      gpu.context = event.bytes - event.live_bytes;
    }
  }

  uint32_t number(size_t process, const Event& event) {
    const auto& infos = out_.report.logs[process].gpus;
    auto info = infos.find(event.device);
    std::string key = info != infos.end() && !info->second.uuid.empty() ? info->second.uuid : std::to_string(event.device);
    auto [it, fresh] = numbers_.try_emplace(key, static_cast<uint32_t>(out_.gpus.size()));
    if (fresh) {
      SimulatedGpu& gpu = out_.gpus.emplace_back();
      gpus_.emplace_back();
      gpu.title = "GPU " + std::to_string(event.device);
      gpu.title += info != infos.end() && !info->second.name.empty() ? " (" + info->second.name + ")" : "";
      gpu.context = options_.context_bytes != UINT64_MAX ? options_.context_bytes : 0;
    }
    return it->second;
  }

  void allocate(size_t process, const Event& event) {
    if (event.device == kNone || event.ptr == kNone || event.bytes == kNone || event.kind == "host" || event.kind == "import") {
      return;
    }
    SimulatedBlock block;
    block.ptr = event.ptr;
    block.bytes = event.bytes;
    block.generation = event.generation;
    block.stream = event.stream;
    block.process = static_cast<uint32_t>(process);
    block.gpu = number(process, event);
    block.place = places_.of(process, event.stack_id);
    block.on_pages = has_address(event.kind) && event.kind != "rmm" && event.bytes <= kPage / 2;
    Gpu& gpu = gpus_[block.gpu];
    SimulatedGpu& told = out_.gpus[block.gpu];
    auto& known = live_[process];
    auto old = known.find(event.ptr);
    if (old != known.end() && old->second.block.generation == event.generation) {
      return;  // made while the log came on: it has both rows
    }
    if (old != known.end()) {
      release(old->second.block, old->second.cost, old->second.granted);
      known.erase(old);
    }
    uint64_t cost = gpu.pages.cost(block, event.kind);
    gpu.used += cost;
    told.needed = std::max(told.needed, gpu.used + told.context);
    // Its own stream has at once what it freed; what others freed is waited for where nothing else is left.
    auto own = gpu.by_stream.find({process, event.stream});
    if (own != gpu.by_stream.end()) {
      uint64_t reused = std::min(own->second, cost);
      own->second -= reused;
      gpu.returning -= reused;
    }
    told.needed_unwaited = std::max(told.needed_unwaited, gpu.used + gpu.returning + told.context);
    bool granted = gpu.granted + cost + told.context <= options_.gpu_bytes;
    if (granted && gpu.granted + gpu.returning + cost + told.context > options_.gpu_bytes) {
      ++told.waits;
      gpu.returning = 0;
      gpu.by_stream.clear();
    }
    if (granted) {
      gpu.granted += cost;
      Group& holder = gpu.holders.at(block.place);
      holder.live += block.bytes;
      ++holder.live_blocks;
    } else if (told.refused++ == 0) {
      told.first = {.time = event.time,
                    .requested = event.bytes,
                    .needed = gpu.granted + cost + told.context,
                    .place = block.place,
                    .holders = largest(gpu.holders, &Group::live, &Group::live_blocks, kHolders)};
    }
    if (block.on_pages) {
      gpu.pages.add(block);
    }
    known[event.ptr] = {block, cost, granted};
  }

  void release(const SimulatedBlock& block, uint64_t cost, bool granted) {
    Gpu& gpu = gpus_[block.gpu];
    uint64_t freed = block.on_pages ? gpu.pages.remove(block) : cost;
    gpu.used -= std::min(gpu.used, freed);
    if (granted) {
      gpu.granted -= std::min(gpu.granted, freed);
      Group& holder = gpu.holders.at(block.place);
      holder.live -= block.bytes;
      --holder.live_blocks;
    }
  }

  // The memory of a process that has ended is the driver's.
  void forget(size_t process) {
    for (const auto& [ptr, known] : live_[process]) {
      release(known.block, known.cost, known.granted);
    }
    live_[process].clear();
  }

  void end(size_t process, const Event& event) {
    auto& known = live_[process];
    auto it = known.find(event.ptr);
    if (it == known.end() || it->second.block.generation != event.generation) {
      return;
    }
    auto [block, cost, granted] = it->second;
    known.erase(it);
    Gpu& gpu = gpus_[block.gpu];
    uint64_t before = gpu.used;
    release(block, cost, granted);
    if (event.stream != kNone) {  // in stream order
      gpu.by_stream[{process, event.stream}] += before - gpu.used;
      gpu.returning += before - gpu.used;
    } else {  // cuMemFree waits for all work: what was freed before it is done
      gpu.returning = 0;
      gpu.by_stream.clear();
    }
  }

  struct Known {
    SimulatedBlock block;
    uint64_t cost = 0;
    bool granted = false;
  };
  Simulation& out_;
  const SimulateOptions& options_;
  Places places_;
  std::vector<std::unordered_map<uint64_t, Known>> live_;
  std::map<std::string, uint32_t> numbers_;
  std::vector<Gpu> gpus_;
};

}  // namespace

Simulation simulate(std::vector<ProcessLog> logs, const SimulateOptions& options) {
  Simulation out;
  out.report.logs = std::move(logs);
  auto frames = std::make_shared<FrameTable>();
  for (const ProcessLog& log : out.report.logs) {
    out.report.stacks.emplace_back(frames).read(log.stem + ".stacks.csv");
  }
  if (options.resolve) {
    frames->resolve();
  }
  Simulator(out, options).run();
  return out;
}

}  // namespace xlog::tools
