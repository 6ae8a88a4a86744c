// What the commands say of themselves, made from their own options: help, the man page, completion for shells.
#include <iostream>
#include <memory>

#include "runtime/base/options.h"
#include "tools/command/commands.h"
#include "tools/command/completion.h"
#include "tools/command/version.h"

namespace xlog::tools {

namespace {

std::string options_help() {
  std::string text = "Options of the library, as environment variables:\n\n";
  for (const OptionRow& row : kOptions) {
    text += "  " + std::string(row.name) + "  (" + std::string(row.form) + "; default " +
            (row.fallback.empty() ? "empty" : std::string(row.fallback)) + ")\n      " + std::string(row.help) + '\n';
  }
  return text;
}

// For roff: a backslash and a leading dot mean something.
std::string roff(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    bool begins = i == 0 || text[i - 1] == '\n';
    out += begins && (text[i] == '.' || text[i] == '\'') ? "\\&" : "";
    out += text[i] == '\\' ? "\\e" : text[i] == '-' ? "\\-" : std::string(1, text[i]);
  }
  return out;
}

std::string man_page(const CLI::App& app) {
  std::string page = ".TH XLOG 1 \"\" \"xlog " + version() +
                     "\"\n.SH NAME\nxlog \\- GPU memory under your control, in programs you cannot rebuild\n.SH SYNOPSIS\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    page += ".B xlog " + command->get_name() + "\n[options]\n.br\n";
  }
  page += ".SH COMMANDS\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    page += ".SS " + roff(command->get_name()) + '\n' + roff(command->get_description()) + '\n';
    for (const CLI::Option* option : command->get_options()) {
      page += ".TP\n.B " + roff(option->get_name(!option->get_positional(), true)) + '\n' + roff(option->get_description()) + '\n';
    }
    if (!command->get_footer().empty()) {
      page += ".PP\nExamples:\n.nf\n" + roff(command->get_footer()) + "\n.fi\n";
    }
  }
  page += ".SH ENVIRONMENT\n";
  for (const OptionRow& row : kOptions) {
    page += ".TP\n.B " + roff(std::string(row.name)) + '\n' + roff(std::string(row.help)) + " (" + roff(std::string(row.form)) +
            "; default " + (row.fallback.empty() ? "empty" : roff(std::string(row.fallback))) + ")\n";
  }
  page +=
      ".SH EXIT STATUS\n"
      "0 is yes, 1 is no (check, simulate, whatis, report \\-\\-verify), 2 is trouble. run ends as the program ended.\n";
  return page;
}

}  // namespace

Command add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  auto* completion = app.add_subcommand("completion", "completion for a shell");
  completion->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer(
      "  source <(xlog completion bash)                                     also for zsh, after compinit\n"
      "  xlog completion fish > ~/.config/fish/completions/xlog.fish");
  return {completion, [shell, &app] {
            std::vector<CommandWords> commands = command_words(app);
            std::string text = *shell == "bash"  ? bash_completion(commands)
                               : *shell == "zsh" ? zsh_completion(commands)
                                                 : fish_completion(commands);
            return static_cast<int>(write_out("", text) ? kYes : kTrouble);
          }};
}

Command add_help(CLI::App& app) {
  auto man = std::make_shared<bool>(false);
  auto* help = app.add_subcommand("help", "the options of the library");
  help->add_flag("--man", *man, "as a man page");
  return {help, [man, &app] {
            std::cout << (*man ? man_page(app)
                               : app.get_formatter()->make_help(&app, "xlog", CLI::AppFormatMode::Normal) + '\n' + options_help());
            return static_cast<int>(kYes);
          }};
}

}  // namespace xlog::tools
