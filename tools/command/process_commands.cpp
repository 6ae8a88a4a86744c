// The commands about running programs: run, env, log, doctor.
#include <filesystem>
#include <iostream>
#include <memory>

#include "runtime/base/options.h"
#include "tools/command/commands.h"
#include "tools/command/control.h"
#include "tools/command/doctor.h"
#include "tools/command/launch.h"
#include "tools/report/json_parts.h"
#include "tools/report/safe_text.h"

namespace xlog::tools {

namespace {

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

int doctor_command(const std::vector<std::string>& command, bool as_json) {
  bool good = true;
  nlohmann::json findings = nlohmann::json::array();
  std::string text;
  for (const Finding& each : examine(command)) {
    text += (each.good ? "  ok  " : "  NO  ") + terminal_line(each.text) + '\n';
    findings.push_back({{"good", each.good}, {"text", each.text}});
    good = good && each.good;
  }
  std::cout << (as_json ? dump({{"format", kFormatVersion}, {"good", good}, {"findings", std::move(findings)}}) : text);
  return good ? kYes : kNo;
}

int log_command(bool on, const std::vector<unsigned>& pids) {
  bool good = true;
  for (unsigned pid : pids) {
    std::string said;
    bool reached = switch_log(pid, on, said);
    (reached ? std::cout : std::cerr) << (reached ? "" : "xlog: ") << terminal_line(said) << '\n';
    good = good && reached;
  }
  return good ? 0 : 2;
}

void add_launch_options(CLI::App& command, LaunchOptions& options) {
  command.add_option("--limit,--budget", options.limit, "limit of device memory a GPU: 8G, 50%, 0=8G,1=4G");
  command.add_option("--backend", options.backend, "native, direct, async or cache");
  command.add_flag("--per-tensor", options.per_tensor, "PyTorch and JAX: their own cache off, every tensor a row, at a cache's speed");
  command.add_flag("--no-log", options.no_log, "write no log");
}

}  // namespace

Command add_run(CLI::App& app) {
  auto options = std::make_shared<LaunchOptions>();
  auto* run = app.add_subcommand("run", "run a program under the library");
  add_launch_options(*run, *options);
  add_debuginfod_option(run);
  run->add_flag("--quiet", options->quiet, "say nothing at the end");
  run->add_option("command", options->command, "the program and its arguments, after --")->required();
  run->positionals_at_end();
  run->footer("  xlog run -- python3 train.py\n  xlog run --limit 8G --backend async -- ./app --verbose");
  return {run, [options] { return launch(*options); }};
}

Command add_env(CLI::App& app) {
  auto options = std::make_shared<LaunchOptions>();
  auto* env = app.add_subcommand("env", "print the exports for a job script");
  add_launch_options(*env, *options);
  env->footer("  eval \"$(xlog env --limit 8G)\"");
  return {env, [options] { return env_command(*options); }};
}

Command add_log(CLI::App& app) {
  auto wanted = std::make_shared<std::string>();
  auto pids = std::make_shared<std::vector<unsigned>>();
  auto* log = app.add_subcommand("log", "switch the log of running processes on or off");
  log->add_option("state", *wanted, "on or off")->required()->check(CLI::IsMember({"on", "off"}));
  log->add_option("pid", *pids, "processes that were started with XLOG_LOG")->required();
  log->footer("  xlog log on 4711");
  return {log, [wanted, pids] { return log_command(*wanted == "on", *pids); }};
}

Command add_doctor(CLI::App& app) {
  struct Options {
    std::vector<std::string> command;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  auto* doctor = app.add_subcommand("doctor", "would the library load into a program, and what would it see");
  doctor->add_option("command", options->command, "the program, after --");
  doctor->add_flag("--json", options->json, "for machines");
  doctor->footer("  xlog doctor -- ./app");
  return {doctor, [options] { return doctor_command(options->command, options->json); }};
}

}  // namespace xlog::tools
