// The command `xlog`.
#include <algorithm>
#include <iostream>
#include <sstream>

#include "runtime/base/options.h"
#include "tools/command/commands.h"
#include "tools/command/messages.h"
#include "tools/command/version.h"
#include "tools/report/safe_text.h"

namespace xlog::tools {

namespace {

constexpr const char* kAbout =
    "xlog: GPU memory under your control, in programs you cannot rebuild.\n\n"
    "  xlog run -- COMMAND     run it, log every device memory call, end with who held the memory\n"
    "  xlog report             read the newest log here\n";

// For people who type `xlog reprt`: what is near a name among those that there are; empty when nothing is.
std::string nearest(std::string_view name, const std::vector<std::string>& names) {
  size_t least = name.size() / 5 + 2;
  std::string best;
  for (const std::string& each : names) {
    size_t distance = name.size() > 3 && each.starts_with(name) ? 0 : edit_distance(name, each);
    if (distance < least) {
      least = distance;
      best = each;
    }
  }
  return best;
}

std::string suggestion(std::string_view name, const std::vector<std::string>& names) {
  std::string found = nearest(name, names);
  return found.empty() ? "" : "; did you mean `" + found + "`?";
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back("--" + name);
    }
  }
  return names;
}

// One line on what was wrong with the arguments.
std::string usage_trouble(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<CLI::App*> used = app.get_subcommands();
  const CLI::App& asked = used.empty() ? app : *used.front();
  std::string name = used.empty() ? "xlog" : asked.get_name();
  std::string help = used.empty() ? " (xlog --help)" : " (xlog " + name + " --help)";
  std::vector<std::string> rest = app.remaining(true);
  auto flag = std::find_if(rest.begin(), rest.end(), [](const std::string& each) { return each.size() > 1 && each[0] == '-'; });
  if (error.get_exit_code() != static_cast<int>(CLI::ExitCodes::ExtrasError) || rest.empty()) {
    return name + ": " + error.what() + help;
  }
  if (flag != rest.end()) {
    std::string shown = flag->substr(0, flag->find('='));
    return (used.empty() ? std::string("there is") : name + " has") + " no option " + shown + suggestion(shown, option_names(asked)) + help;
  }
  if (!used.empty()) {
    return name + " does not take \"" + rest.front() + "\"" + help;
  }
  std::vector<std::string> commands;
  for (const CLI::App* each : app.get_subcommands({})) {
    commands.push_back(each->get_name());
  }
  return "there is no command " + rest.front() + suggestion(rest.front(), commands) + help;
}

int command(int argc, char** argv) {
  CLI::App app{kAbout, "xlog"};
  app.set_help_all_flag("--help-all");
  app.require_subcommand(0, 1);
  std::vector<Command> commands;
  for (auto add : {add_run, add_report, add_check, add_diff, add_simulate, add_export, add_whatis, add_env, add_log, add_doctor,
                   add_completion, add_help}) {
    commands.push_back(add(app));
    commands.back().app->set_version_flag("--version", "xlog " + version());
  }
  app.set_version_flag("--version", "xlog " + version());
  try {
    app.parse(argc, argv);
    for (const Command& each : commands) {
      if (*each.app) {
        return finish_output(each.run());
      }
    }
    return write_out("", app.help()) ? kYes : kTrouble;
  } catch (const CLI::Success& asked) {  // --help and --version
    return finish_output(app.exit(asked, std::cout, std::cerr) == 0 ? kYes : kTrouble);
  } catch (const CLI::ParseError& error) {
    complain(usage_trouble(app, error));
    return kTrouble;
  }
}

}  // namespace

}  // namespace xlog::tools

int main(int argc, char** argv) {
  try {
    return xlog::tools::command(argc, argv);
  } catch (const std::exception& error) {
    xlog::tools::complain(error.what());
    return xlog::tools::kTrouble;
  }
}
