#include <memory>

#include "tools/analysis/simulate.h"
#include "tools/command/commands.h"

namespace xlog::tools {

namespace {

struct Options {
  std::vector<std::string> names;
  std::string gpu;
  std::string context;
  bool json = false;
};

int run_simulate(const Options& options) {
  SimulateOptions simulated;
  simulated.gpu_bytes = parse_size_option("--gpu", options.gpu);
  simulated.context_bytes = options.context.empty() ? UINT64_MAX : parse_size_option("--context", options.context);
  std::vector<ProcessLog> logs = named_logs(options.names);
  if (logs.empty()) {
    return kTrouble;
  }
  size_t count = logs.size();
  simulated.progress = terminal_progress();
  Simulation simulation = simulate(std::move(logs), simulated);
  simulated.progress = {};
  int status = simulation.report.problems.size() == count ? kTrouble : simulation.fits() ? kYes : kNo;
  return options.json ? print_json(simulation_json(simulation, simulated), status)
                      : print_text(simulation_text(simulation, simulated), status);
}

}  // namespace

Command add_simulate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  auto* simulate = app.add_subcommand("simulate", "would the run fit on another GPU, from its log alone (exit 1: no)");
  simulate->add_option("--gpu", options->gpu, "memory of that GPU: 24G")->required();
  simulate->add_option("--context", options->context, "taken beside the blocks: 500M; as the log shows if not given");
  simulate->add_flag("--json", options->json, "for machines");
  simulate->add_option("log", options->names, "folders or .csv files; the newest here if none is named")->type_name("LOG");
  simulate->footer(
      "  xlog simulate --gpu 24G xlog.train/\nThe program is taken to ask for the same again: one that looks how much memory there is may "
      "ask for less.");
  return {simulate, [options] { return run_simulate(*options); }};
}

}  // namespace xlog::tools
