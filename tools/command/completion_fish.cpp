#include "tools/command/completion.h"
#include "tools/command/shell_text.h"

namespace xlog::tools {

namespace {

std::string action(const Values& values) {
  std::string words;
  for (const std::string& each : values.words) {
    words += (words.empty() ? "" : " ") + each;
  }
  switch (values.kind) {
    case Values::Kind::words:
      return " -x -a " + fish_word(words);
    case Values::Kind::files:
      return " -r -F" + (words.empty() ? "" : " -a " + fish_word(words));
    case Values::Kind::folders:
      return " -x -a '(__fish_complete_directories)'";
    case Values::Kind::command:
      return " -x -a '(__fish_complete_subcommand --fcs-skip=2)'";
    default:
      return " -x";
  }
}

}  // namespace

std::string fish_completion(const std::vector<CommandWords>& commands) {
  std::string out = "# xlog completion fish\ncomplete -c xlog -f\n";
  for (const CommandWords& command : commands) {
    out += "complete -c xlog -n __fish_use_subcommand -a " + command.name + " -d " + fish_word(command.help) + '\n';
    std::string within = "complete -c xlog -n '__fish_seen_subcommand_from " + command.name + "'";
    for (const OptionWords& option : command.options) {
      out += within;
      for (const std::string& name : option.names) {
        out += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      out += (option.takes_value ? action(option.values) : "") + " -d " + fish_word(option.help) + '\n';
    }
    for (const Values& values : command.arguments) {
      if (values.kind != Values::Kind::nothing) {
        std::string what = action(values);
        out += within + (values.kind == Values::Kind::files ? " -F" : what.substr(std::string(" -x").size())) + '\n';
      }
    }
  }
  return out;
}

}  // namespace xlog::tools
