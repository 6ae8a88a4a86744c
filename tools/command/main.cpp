// The command `xlog`.
#include <cstdio>
#include <iostream>
#include <sstream>

#include "tools/command/commands.h"
#include "tools/report/safe_text.h"

namespace xlog::tools {

namespace {

constexpr const char* kAbout =
    "xlog: GPU memory under your control, in programs you cannot rebuild.\n\n"
    "  xlog run -- COMMAND     run it, log every device memory call, end with who held the memory\n"
    "  xlog report             read the newest log here\n";

int command(int argc, char** argv) {
  CLI::App app{kAbout, "xlog"};
  app.set_help_all_flag("--help-all");
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  std::vector<Command> commands;
  for (auto add : {add_run, add_report, add_check, add_diff, add_simulate, add_export, add_whatis, add_env, add_log, add_doctor,
                   add_completion, add_help}) {
    commands.push_back(add(app));
  }
  try {
    app.parse(argc, argv);
    for (const Command& each : commands) {
      if (*each.app) {
        return finish_output(each.run());
      }
    }
  } catch (const CLI::ParseError& error) {
    std::ostringstream said;
    int status = app.exit(error, std::cout, said) == 0 ? kYes : kTrouble;
    std::cerr << terminal_text(said.str());
    return finish_output(status);
  }
  return kTrouble;
}

}  // namespace

}  // namespace xlog::tools

int main(int argc, char** argv) {
  try {
    return xlog::tools::command(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "xlog: %s\n", error.what());
    return xlog::tools::kTrouble;
  }
}
