#include <nlohmann/json.hpp>

#include "tools/analysis/simulate.h"
#include "tools/report/format.h"
#include "tools/report/json_parts.h"
#include "tools/report/safe_text.h"
#include "tools/report/stack_text.h"

namespace xlog::tools {

using nlohmann::json;

std::string simulation_text(const Simulation& simulation, const SimulateOptions& options) {
  const Report& report = simulation.report;
  std::string out;
  for (const std::string& each : report.problems) {
    out += "note: " + terminal_line(each) + '\n';
  }
  for (const SimulatedGpu& gpu : simulation.gpus) {
    out += terminal_line(gpu.title) + " with " + size_text(options.gpu_bytes) + ": ";
    out += gpu.refused == 0 ? "fits" : "does not fit: " + plural(gpu.refused, "request") + " would be refused";
    out += "; it needs " + size_text(gpu.needed) + ", " + size_text(gpu.context) +
           " of it beside the blocks: contexts, libraries, and whoever else was on the GPU (--context)\n";
    if (gpu.needed_unwaited > gpu.needed) {
      out += "  " + size_text(gpu.needed_unwaited) + " where no stream waits for what another has freed";
      out += gpu.waits != 0 ? "; on this GPU " + plural(gpu.waits, "request") + " would wait\n" : "\n";
    }
    if (gpu.refused == 0) {
      continue;
    }
    const SimulatedRefusal& first = gpu.first;
    out += "  first " + time_text(first.time - report.first_time) + " after the first call: asked for " + size_text(first.requested) +
           ", which needs " + size_text(first.needed) + " in all\n" +
           stack_text(report.stack(first.place), report.log_of(first.place), false, 3, "      ");
    out += "  in use then:\n";
    for (const Holder& each : first.holders) {
      out += "  " + size_text(each.bytes) + "  " + plural(each.blocks, "block") + '\n' +
             stack_text(report.stack(each.place), report.log_of(each.place), false, 3, "      ");
    }
  }
  return out.empty() ? "No device memory is in the log.\n" : out;
}

std::string simulation_json(const Simulation& simulation, const SimulateOptions& options) {
  json out = {{"format", kFormatVersion},
              {"gpu_bytes", options.gpu_bytes},
              {"fits", simulation.fits()},
              {"problems", simulation.report.problems},
              {"gpus", json::array()}};
  for (const SimulatedGpu& gpu : simulation.gpus) {
    json each = {{"title", gpu.title},         {"context_bytes", gpu.context},
                 {"needed_bytes", gpu.needed}, {"needed_without_waits_bytes", gpu.needed_unwaited},
                 {"refused", gpu.refused},     {"waits", gpu.waits}};
    if (gpu.refused != 0) {
      each["first"] = {{"time_ns", gpu.first.time},
                       {"requested_bytes", gpu.first.requested},
                       {"needed_bytes", gpu.first.needed},
                       {"stack", stack_json(simulation.report, gpu.first.place)},
                       {"in_use", holders_json(simulation.report, gpu.first.holders)}};
    }
    out["gpus"].push_back(std::move(each));
  }
  return dump(out);
}

}  // namespace xlog::tools
