// The commands about running programs: run, env, log, doctor.
#include <filesystem>
#include <iostream>
#include <memory>

#include "runtime/base/options.h"
#include "tools/command/commands.h"
#include "tools/command/control.h"
#include "tools/command/doctor.h"
#include "tools/command/launch.h"
#include "tools/command/library_options.h"
#include "tools/command/log_folder.h"
#include "tools/command/messages.h"
#include "tools/command/shell_text.h"
#include "tools/report/json_parts.h"
#include "tools/report/safe_text.h"

namespace xlog::tools {

namespace {

// Text for a shell to read: nothing is printed before everything was checked, and every value goes through shell_word().
int env_command(const LaunchOptions& options) {
  std::string trouble = library_trouble();
  Variables variables = launch_variables(options);
  std::string inherited = inherited_text(variables);
  if (needs_log_folder(options)) {
    std::error_code error;
    std::filesystem::path folder = std::filesystem::absolute(options.folder.empty() ? "xlog.logs" : options.folder, error);
    variables.emplace_back("XLOG_LOG", literal_pattern(folder.lexically_normal()) + '/');
    trouble = error ? "the current folder is gone (" + error.message() + ")" : trouble;
  }
  std::string text = "export LD_PRELOAD=" + shell_word(library_path()) + "\"${LD_PRELOAD:+:$LD_PRELOAD}\"\n";
  for (const auto& [name, value] : variables) {
    text += "export " + name + '=' + shell_word(value) + '\n';
    setenv(name.c_str(), value.c_str(), 1);
  }
  std::vector<std::string> complaints;
  check_environment(complaints);
  if (!trouble.empty()) {
    complaints.push_back(trouble);
  }
  for (const std::string& each : complaints) {
    complain(each);
  }
  if (!complaints.empty()) {
    return kTrouble;
  }
  if (!inherited.empty()) {
    complain(inherited);
  }
  SizeSpec limit;
  auto given = options.values.find("XLOG_BUDGET");
  if (given != options.values.end() && parse_size(given->second, limit) == SizeError::none && !limit.is_share) {
    text += "# the limit is " + std::to_string(limit.bytes) + " bytes a GPU\n";
  }
  return write_out("", text) ? kYes : kTrouble;
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
    if (reached) {
      std::cout << terminal_line(said) << '\n';
    } else {
      complain(said);
    }
    good = good && reached;
  }
  return good ? 0 : 2;
}

std::string value_name(const LibraryOption& option) {
  std::string names;
  for (const std::string& each : option.words) {
    names += each + '|';
  }
  if (option.is_path) {
    return names + "PATH";
  }
  if (!names.empty()) {
    names.pop_back();
  }
  return !names.empty() ? names : option.row->form.starts_with("a size") ? "SIZE" : "TEXT";
}

void add_library_option(CLI::App& command, LaunchOptions& options, const LibraryOption& option) {
  std::string name(option.row->name);
  std::string help = std::string(option.row->help) + " (" + name + ")";
  CLI::Option* added = nullptr;
  if (option.is_switch) {
    added = command.add_flag_function(
        option.flags, [&options, name](int64_t value) { options.values[name] = value > 0 ? "1" : "0"; },
        help + "; " + option.flags + "=0 is off, the default is " + std::string(option.row->fallback));
  } else {
    added = command.add_option_function<std::string>(
        option.flags, [&options, name](const std::string& value) { options.values[name] = value; }, help);
    added->type_name(value_name(option));
    added->check(CLI::Validator([name](const std::string& value) { return value_trouble(name, value); }, ""));
  }
  added->group("Options of the library");
}

void add_launch_options(CLI::App& command, LaunchOptions& options) {
  auto* folder = command.add_option("-o,--folder", options.folder, "where the log goes; made if it is not there");
  folder->type_name("FOLDER");
  command.add_flag("--per-tensor", options.per_tensor, "PyTorch and JAX: their own cache off, every tensor a row, at a cache's speed");
  auto* no_log = command.add_flag("--no-log", options.no_log, "write no log");
  for (const LibraryOption& each : library_options()) {
    add_library_option(command, options, each);
  }
  folder->excludes(no_log)->excludes("--log");
  no_log->excludes("--log");
}

}  // namespace

Command add_run(CLI::App& app) {
  auto options = std::make_shared<LaunchOptions>();
  auto* run = app.add_subcommand("run", "run a program under the library");
  add_launch_options(*run, *options);
  add_debuginfod_option(run);
  run->add_flag("--quiet", options->quiet, "say nothing at the end");
  run->add_option("command", options->command, "the program and its arguments, after --")->required()->type_name("COMMAND");
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
  log->add_option("pid", *pids, "processes that were started with XLOG_LOG")->required()->check(count_check());
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
  doctor->add_option("command", options->command, "the program, after --")->type_name("COMMAND");
  doctor->add_flag("--json", options->json, "for machines");
  doctor->footer("  xlog doctor -- ./app");
  return {doctor, [options] { return doctor_command(options->command, options->json); }};
}

}  // namespace xlog::tools
