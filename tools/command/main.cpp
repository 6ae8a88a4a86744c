// The command `xlog`: arguments here, everything else in the files beside.
#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>

#include "runtime/base/options.h"
#include "tools/command/control.h"
#include "tools/command/doctor.h"
#include "tools/command/launch.h"
#include "tools/command/whatis.h"
#include "tools/report/report.h"

namespace {

using namespace xlog;
using namespace xlog::tools;

constexpr const char* kAbout =
    "xlog: GPU memory under your control, in programs you cannot rebuild.\n\n"
    "  xlog run -- COMMAND     run it, log every device memory call, end with who held the memory\n"
    "  xlog report             read the newest log here\n";

std::string options_help() {
  std::string text = "Options of the library, as environment variables:\n\n";
  for (const OptionRow& row : kOptions) {
    text += "  " + std::string(row.name) + "  (" + std::string(row.form) + "; default " +
            (row.fallback.empty() ? "empty" : std::string(row.fallback)) + ")\n      " + std::string(row.help) + '\n';
  }
  return text;
}

int report_command(const std::vector<std::string>& names, bool json, bool verify, const ReportStyle& style) {
  std::vector<std::string> problems;
  std::vector<ProcessLog> logs = find_logs(names, problems);
  for (const std::string& each : problems) {
    std::cerr << "xlog: " << each << '\n';
  }
  if (logs.empty()) {
    return 2;
  }
  Report report = analyse(std::move(logs), {});
  if (verify) {
    for (const std::string& each : report.contradictions) {
      std::cout << each << '\n';
    }
    for (const std::string& each : report.problems) {
      std::cout << each << '\n';
    }
    uint64_t live = 0;
    for (const GpuReport& gpu : report.gpus) {
      live += gpu.live;
    }
    std::cout << report.rows << " rows, " << report.contradiction_count << " contradictions, " << report.foreign_rows << " foreign, "
              << report.unfinished_rows << " unfinished, " << report.lost << " lost, live at the end " << live << " bytes\n";
    return report.contradiction_count == 0 && report.problems.empty() && report.foreign_rows == 0 ? 0 : 1;
  }
  std::cout << (json ? report_json(report, style) : report_text(report, style)) << std::flush;
  return report.problems.size() == report.logs.size() || !problems.empty() ? 2 : 0;
}

int whatis_command(const std::string& address, WhatisQuery query, const std::vector<std::string>& names) {
  std::optional<uint64_t> parsed = parse_address(address);
  if (!parsed) {
    std::cerr << "xlog: \"" << address << "\" is no address: give it as 0x7f0000000000\n";
    return 2;
  }
  query.address = *parsed;
  std::vector<std::string> problems;
  std::vector<ProcessLog> logs = find_logs(names, problems);
  WhatisAnswer answer = what_is(query, logs, true);
  problems.insert(problems.end(), answer.problems.begin(), answer.problems.end());
  for (const std::string& each : problems) {
    std::cerr << "xlog: " << each << '\n';
  }
  std::cout << answer.text << std::flush;
  return !problems.empty() ? 2 : answer.found ? 0 : 1;
}

int env_command(const LaunchOptions& options) {
  std::string library = library_path();
  std::string folder;
  if (!library_trouble().empty()) {
    std::cerr << "xlog: " << library_trouble() << '\n';
    return 2;
  }
  for (const auto& [name, value] : launch_environment(options, folder)) {
    if (name == "LD_PRELOAD") {
      std::cout << "export LD_PRELOAD='" << library << "'\"${LD_PRELOAD:+:$LD_PRELOAD}\"\n";
    } else if (!folder.empty() && name == "XLOG_LOG") {
      std::cout << "export XLOG_LOG='" << std::filesystem::absolute("xlog.logs").string() << "/'\n";
    } else {
      std::cout << "export " << name << "='" << value << "'\n";
    }
    setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<std::string> complaints;
  check_environment(complaints);
  for (const std::string& each : complaints) {
    std::cerr << "xlog: " << each << '\n';
  }
  SizeSpec limit;
  if (!options.limit.empty() && parse_size(options.limit, limit) == SizeError::none && !limit.is_share) {
    std::cout << "# the limit is " << limit.bytes << " bytes a GPU\n";
  }
  return complaints.empty() ? 0 : 2;
}

int doctor_command(const std::vector<std::string>& command) {
  bool good = true;
  for (const Finding& each : examine(command)) {
    std::cout << (each.good ? "  ok  " : "  NO  ") << each.text << '\n';
    good = good && each.good;
  }
  return good ? 0 : 1;
}

int log_command(bool on, const std::vector<unsigned>& pids) {
  bool good = true;
  for (unsigned pid : pids) {
    std::string said;
    bool reached = switch_log(pid, on, said);
    (reached ? std::cout : std::cerr) << (reached ? "" : "xlog: ") << said << '\n';
    good = good && reached;
  }
  return good ? 0 : 2;
}

int command(int argc, char** argv) {
  CLI::App app{kAbout};
  app.set_help_all_flag("--help-all");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);

  LaunchOptions launch_options;
  auto* run = app.add_subcommand("run", "run a program under the library");
  run->add_option("--limit,--budget", launch_options.limit, "limit of device memory a GPU: 8G, 50%, 0=8G,1=4G");
  run->add_option("--backend", launch_options.backend, "native, direct, async or cache");
  run->add_flag("--per-tensor", launch_options.per_tensor, "PyTorch and JAX: their own cache off, every tensor a row, at a cache's speed");
  run->add_flag("--no-log", launch_options.no_log, "write no log");
  run->add_flag("--quiet", launch_options.quiet, "say nothing at the end");
  run->add_option("command", launch_options.command, "the program and its arguments, after --")->required();
  run->positionals_at_end();

  std::vector<std::string> names;
  bool json = false;
  bool verify = false;
  ReportStyle style;
  auto* report = app.add_subcommand("report", "what held the memory: newest log here, or the ones named");
  report->add_flag("--json", json, "for machines");
  report->add_flag("--all-frames", style.all_frames, "whole stacks");
  report->add_option("--top", style.top, "stacks a section")->default_val(5);
  report->add_flag("--verify", verify, "check that the log agrees with itself; exit 1 when it does not");
  report->add_option("log", names, "folders or .csv files");

  std::string address;
  WhatisQuery query;
  auto* whatis = app.add_subcommand("whatis", "what stood at a device address (exit 1: no block of the log)");
  whatis->add_option("address", address, "0x7f...")->required();
  whatis->add_option("log", names, "folders or .csv files; the newest here if none is named");
  whatis->add_option("--at", query.at, "when: ns since the epoch, or 1.5s, 20ms, 300us after the first row");
  whatis->add_flag("--all-frames", query.all_frames, "whole stacks");

  auto* env = app.add_subcommand("env", "print the exports for a job script");
  env->add_option("--limit,--budget", launch_options.limit, "as for run");
  env->add_option("--backend", launch_options.backend, "as for run");
  env->add_flag("--per-tensor", launch_options.per_tensor, "as for run");
  env->add_flag("--no-log", launch_options.no_log, "as for run");

  std::string wanted;
  std::vector<unsigned> pids;
  auto* log = app.add_subcommand("log", "switch the log of running processes on or off");
  log->add_option("state", wanted, "on or off")->required()->check(CLI::IsMember({"on", "off"}));
  log->add_option("pid", pids, "processes that were started with XLOG_LOG")->required();

  std::vector<std::string> examined;
  auto* doctor = app.add_subcommand("doctor", "would the library load into a program, and what would it see");
  doctor->add_option("command", examined, "the program, after --");

  app.add_subcommand("help", "the options of the library");

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    int code = app.exit(error, std::cout, std::cerr);
    return code == 0 ? 0 : 2;
  }
  if (*run) {
    return launch(launch_options);
  }
  if (*report) {
    return report_command(names, json, verify, style);
  }
  if (*log) {
    return log_command(wanted == "on", pids);
  }
  if (*whatis) {
    return whatis_command(address, query, names);
  }
  if (*env) {
    return env_command(launch_options);
  }
  if (*doctor) {
    return doctor_command(examined);
  }
  std::cout << app.get_formatter()->make_help(&app, "xlog", CLI::AppFormatMode::Normal) << '\n' << options_help();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "xlog: %s\n", error.what());
    return 2;
  }
}
