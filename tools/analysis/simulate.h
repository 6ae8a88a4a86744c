// A run on another GPU, from its log alone: would it fit, where would it fail, and who held the memory then.
//
// Small blocks take the 2 MiB pages that they stand on in the log, larger ones whole pages: what the driver takes. A block that
// is freed in stream order may be had at once by its stream; another stream has to wait for that free, and the driver makes it
// wait before it refuses. A request that does not fit is left out, with its free, and the run goes on.
#pragma once

#include <string>
#include <vector>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

struct SimulateOptions {
  uint64_t gpu_bytes = 0;
  uint64_t context_bytes = UINT64_MAX;  // taken beside the blocks, for each GPU; UINT64_MAX: as the log's first look shows
  bool resolve = true;
  Progress progress = {};
};

struct SimulatedRefusal {
  uint64_t time = 0;
  uint64_t requested = 0;
  uint64_t needed = 0;  // bytes on the GPU with it
  uint32_t place = 0;
  std::vector<Holder> holders;
};

struct SimulatedGpu {
  std::string title;
  uint64_t context = 0;
  uint64_t needed = 0;           // the most, with the context, had nothing been refused
  uint64_t needed_unwaited = 0;  // the same, where no stream waits for another's frees
  uint64_t refused = 0;
  uint64_t waits = 0;  // requests that fit only when another stream's frees are waited for
  SimulatedRefusal first;
};

struct Simulation {
  Report report;  // for its stacks and logs; without sums
  std::vector<SimulatedGpu> gpus;
  [[nodiscard]] bool fits() const {
    for (const SimulatedGpu& gpu : gpus) {
      if (gpu.refused != 0) {
        return false;
      }
    }
    return true;
  }
};

Simulation simulate(std::vector<ProcessLog> logs, const SimulateOptions& options);
std::string simulation_text(const Simulation& simulation, const SimulateOptions& options);
std::string simulation_json(const Simulation& simulation, const SimulateOptions& options);

}  // namespace xlog::tools
