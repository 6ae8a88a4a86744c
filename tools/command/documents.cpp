// What the commands say of themselves, made from their own options: help, the man page, completion for shells.
#include <iostream>
#include <memory>

#include "runtime/base/options.h"
#include "tools/command/commands.h"

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
  std::string page = ".TH XLOG 1\n.SH NAME\nxlog \\- GPU memory under your control, in programs you cannot rebuild\n.SH SYNOPSIS\n";
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

// The long and short names of a command's options.
std::string flags_of(const CLI::App& command) {
  std::string flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      flags += (flags.empty() ? "--" : " --") + name;
    }
    for (const std::string& name : option->get_snames()) {
      flags += " -" + name;
    }
  }
  return flags;
}

std::string bash_completion(const CLI::App& app) {
  std::string commands;
  std::string cases;
  for (const CLI::App* command : app.get_subcommands({})) {
    commands += (commands.empty() ? "" : " ") + command->get_name();
    cases += "    " + command->get_name() + ") words=\"" + flags_of(*command) + "\" ;;\n";
  }
  return "_xlog() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} words=\"" +
         commands +
         "\"\n"
         "  COMPREPLY=()\n"
         "  if [ \"$COMP_CWORD\" -gt 1 ]; then\n"
         "    case ${COMP_WORDS[1]} in\n" +
         cases +
         "    *) words= ;;\n"
         "    esac\n"
         "    [[ $word == -* ]] || words=\n"
         "  fi\n"
         "  [ -z \"$words\" ] || COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _xlog xlog\n";
}

std::string fish_completion(const CLI::App& app) {
  std::string out;
  for (const CLI::App* command : app.get_subcommands({})) {
    out += "complete -c xlog -n __fish_use_subcommand -f -a " + command->get_name() + " -d '" + command->get_description() + "'\n";
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames()) {
        out += "complete -c xlog -n '__fish_seen_subcommand_from " + command->get_name() + "' -l " + name + "\n";
      }
    }
  }
  return out;
}

}  // namespace

Command add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  auto* completion = app.add_subcommand("completion", "completion for a shell");
  completion->add_option("shell", *shell, "bash, zsh or fish")->required()->check(CLI::IsMember({"bash", "zsh", "fish"}));
  completion->footer("  source <(xlog completion bash)");
  return {completion, [shell, &app] {
            std::cout << (*shell == "zsh" ? "autoload -U +X bashcompinit && bashcompinit\n" : "")
                      << (*shell == "fish" ? fish_completion(app) : bash_completion(app));
            return static_cast<int>(kYes);
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
