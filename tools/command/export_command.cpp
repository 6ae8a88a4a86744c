#include <fstream>
#include <iostream>
#include <memory>

#include "tools/command/commands.h"
#include "tools/report/export.h"

namespace xlog::tools {

namespace {

struct Options {
  std::vector<std::string> names;
  std::string format;
  std::string what = "peak";
  std::string out;
  uint64_t device = 0;
};

int write_to(std::ostream& out, const Options& options, const std::vector<ProcessLog>& logs) {
  std::vector<std::string> problems;
  if (options.format == "folded") {
    export_folded(read_report(logs, {.snapshots = 0}), parse_what(options.what), out);
  } else if (options.format == "trace") {
    export_trace(logs, out, problems);
  } else {
    uint64_t left_out = export_rmm(logs, options.device, out, problems);
    if (left_out != 0) {
      std::cerr << "xlog: " << left_out << " rows left out: of other GPUs (--device), or of memory that is no device address\n";
    }
  }
  out.flush();
  for (const std::string& each : problems) {
    std::cerr << "xlog: " << each << '\n';
  }
  return out.good() && problems.size() < std::max<size_t>(logs.size(), 1) ? kYes : kTrouble;
}

int run_export(const Options& options) {
  std::vector<ProcessLog> logs = named_logs(options.names);
  if (logs.empty()) {
    return kTrouble;
  }
  if (options.out.empty() || options.out == "-") {
    return write_to(std::cout, options, logs);
  }
  if (!has_reader(options.out)) {
    return kTrouble;
  }
  std::ofstream out(options.out, std::ios::binary);
  int status = write_to(out, options, logs);
  if (!out) {
    std::cerr << "xlog: " << options.out << ": cannot be written\n";
  }
  return status;
}

}  // namespace

Command add_export(CLI::App& app) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("export", "a log in the forms that other tools read");
  command
      ->add_option("format", options->format,
                   "folded = stacks for flame graphs, trace = Perfetto and Chrome, rmm = RMM's CSV, for its REPLAY_BENCH")
      ->required()
      ->check(CLI::IsMember({"folded", "trace", "rmm"}));
  command->add_option("--what", options->what, "folded: peak = held at the peak, live = at the end, total = allocated in all")
      ->check(CLI::IsMember({"peak", "live", "total"}));
  command->add_option("--device", options->device, "rmm: whose memory")->check(count_check());
  command->add_option("-o,--output", options->out, "file; stdout if not given")->type_name("FILE");
  command->add_option("log", options->names, "folders or .csv files; the newest here if none is named")->type_name("LOG");
  command->footer(
      "  xlog export folded xlog.train/ | flamegraph.pl > peak.svg\n  xlog export trace -o trace.json xlog.train/     open in "
      "ui.perfetto.dev");
  return {command, [options] { return run_export(*options); }};
}

}  // namespace xlog::tools
