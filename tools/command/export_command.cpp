#include <memory>

#include "tools/command/commands.h"
#include "tools/command/messages.h"
#include "tools/report/export.h"
#include "tools/report/gzip_stream.h"
#include "tools/report/output_file.h"

namespace xlog::tools {

namespace {

struct Options {
  std::vector<std::string> names;
  std::string format;
  std::string what = "peak";
  std::string out;
  bool gzip = false;
  uint64_t device = 0;
};

// Forms with an entry for each row read the rows by themselves.
int write_rows(std::ostream& out, const Options& options, const std::vector<ProcessLog>& logs) {
  std::vector<std::string> problems;
  if (options.format == "trace") {
    export_trace(logs, out, problems);
  } else {
    uint64_t left_out = export_rmm(logs, options.device, out, problems);
    if (left_out != 0) {
      complain(std::to_string(left_out) + " rows left out: of other GPUs (--device), or of memory that is no device address");
    }
  }
  for (const std::string& each : problems) {
    complain(each);
  }
  return problems.size() < logs.size() ? kYes : kTrouble;
}

int write_report(std::ostream& out, const Options& options, const std::vector<ProcessLog>& logs) {
  Report report = read_report(logs, {.snapshots = 0});
  if (options.format == "folded") {
    export_folded(report, parse_what(options.what), out);
  } else if (options.format == "pytorch") {
    export_pytorch(report, out);
  } else if (options.format == "speedscope") {
    export_speedscope(report, out);
  } else if (options.format == "pprof") {
    export_pprof(report, out);
  } else {
    export_openmetrics(report, out);
  }
  return report.problems.size() < logs.size() ? kYes : kTrouble;
}

int write_to(std::ostream& out, const Options& options, const std::vector<ProcessLog>& logs) {
  bool has_rows = options.format == "trace" || options.format == "rmm";
  return has_rows ? write_rows(out, options, logs) : write_report(out, options, logs);
}

int run_export(const Options& options) {
  std::vector<ProcessLog> logs = named_logs(options.names);
  if (logs.empty()) {
    return kTrouble;
  }
  OutputFile file(options.out);
  int status = kTrouble;
  // pprof's files are always compressed.
  if (options.gzip || options.out.ends_with(".gz") || options.format == "pprof") {
    GzipStream packed(file.stream());
    status = write_to(packed, options, logs);
    packed.finish();
  } else {
    status = write_to(file.stream(), options, logs);
  }
  if (status != kYes) {
    return status;  // what there is of it would be taken for all
  }
  if (!file.commit()) {
    complain(file.problem());
    return kTrouble;
  }
  return status;
}

}  // namespace

Command add_export(CLI::App& app) {
  auto options = std::make_shared<Options>();
  auto* command = app.add_subcommand("export", "a log in the forms that other tools read");
  command
      ->add_option("format", options->format,
                   "folded = stacks for flame graphs; speedscope; pprof; pytorch = a snapshot for pytorch.org/memory_viz; trace = "
                   "Perfetto and Chrome; openmetrics = Prometheus; rmm = RMM's CSV, for its REPLAY_BENCH")
      ->required()
      ->check(CLI::IsMember({"folded", "speedscope", "pprof", "pytorch", "trace", "openmetrics", "rmm"}));
  command->add_option("--what", options->what, "folded: peak = held at the peak, live = at the end, total = allocated in all")
      ->check(CLI::IsMember({"peak", "live", "total"}));
  command->add_option("--device", options->device, "rmm: whose memory")->check(count_check());
  command->add_flag("--gzip", options->gzip, "compressed; so is a file whose name ends in .gz, and pprof always");
  command->add_option("-o,--output", options->out, "file; standard output if not given")->type_name("FILE");
  command->add_option("log", options->names, "folders or .csv files; the newest here if none is named")->type_name("LOG");
  command->footer(
      "  xlog export folded xlog.train/ | flamegraph.pl > peak.svg\n"
      "  xlog export trace -o trace.json.gz xlog.train/         open in ui.perfetto.dev\n"
      "  xlog export pytorch -o train.pickle xlog.train/        drop on pytorch.org/memory_viz\n"
      "  xlog export pprof -o train.pb.gz xlog.train/           pprof -http=: train.pb.gz");
  return {command, [options] { return run_export(*options); }};
}

}  // namespace xlog::tools
