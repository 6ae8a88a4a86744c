#include "tools/command/completion.h"
#include "tools/command/shell_text.h"

namespace xlog::tools {

namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& each : words) {
    out += (out.empty() ? "" : " ") + each;
  }
  return out;
}

// Assignments to the script's variables.
std::string assigned(const Values& values) {
  switch (values.kind) {
    case Values::Kind::words:
      return "kind=words words=" + shell_word(joined(values.words));
    case Values::Kind::files:
      return "kind=files" + (values.words.empty() ? "" : " words=" + shell_word(joined(values.words)));
    case Values::Kind::folders:
      return "kind=folders";
    case Values::Kind::command:
      return "kind=command";
    default:
      return "kind=nothing";
  }
}

// A case for each option with a value: "run --limit") ... ;;
std::string option_cases(const std::vector<CommandWords>& commands) {
  std::string out;
  for (const CommandWords& command : commands) {
    for (const OptionWords& option : command.options) {
      std::string names;
      for (const std::string& name : option.names) {
        names += (names.empty() ? "" : "|") + shell_word(command.name + ' ' + name);
      }
      out += option.takes_value ? "    " + names + ") " + assigned(option.values) + " ;;\n" : "";
    }
  }
  return out;
}

std::string argument_cases(const std::vector<CommandWords>& commands) {
  std::string out;
  for (const CommandWords& command : commands) {
    for (size_t i = 0; i < command.arguments.size(); ++i) {
      std::string place = i + 1 == command.arguments.size() ? " '*" : ' ' + std::to_string(i) + "'";
      out += "    '" + command.name + place + ") " + assigned(command.arguments[i]) + " ;;\n";
    }
  }
  return out;
}

std::string flag_cases(const std::vector<CommandWords>& commands) {
  std::string out;
  for (const CommandWords& command : commands) {
    std::vector<std::string> names;
    for (const OptionWords& option : command.options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
    }
    out += "      " + command.name + ") kind=words words=" + shell_word(joined(names)) + " ;;\n";
  }
  return out;
}

}  // namespace

std::string bash_completion(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  names.reserve(commands.size());
  for (const CommandWords& each : commands) {
    names.push_back(each.name);
  }
  return "# xlog completion bash\n"
         "_xlog_value() {  # sets kind, when the option of the command takes a value\n"
         "  case \"$1 $2\" in\n" +
         option_cases(commands) +
         "    *) return 1 ;;\n"
         "  esac\n"
         "}\n"
         "_xlog_argument() {  # sets kind for the argument at a position\n"
         "  case \"$1 $2\" in\n" +
         argument_cases(commands) +
         "  esac\n"
         "}\n"
         "_xlog() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before= command=${COMP_WORDS[1]} kind=nothing words= each place=0 i\n"
         "  COMPREPLY=()\n"
         "  for ((i = 2; i < COMP_CWORD; ++i)); do\n"
         "    each=${COMP_WORDS[i]}\n"
         "    if [[ $each == = ]]; then continue; fi  # bash splits --option=value\n"
         "    if [[ -n $before ]]; then before=; continue; fi\n"
         "    if [[ $each == -- ]]; then place=$((COMP_CWORD - i - 1)); break; fi\n"
         "    if [[ $each != -* ]]; then\n"
         "      place=$((place + 1))\n"
         "      if [[ $command == run || $command == doctor ]]; then place=$((COMP_CWORD - i)); break; fi\n"
         "    elif _xlog_value \"$command\" \"$each\"; then before=$each; fi\n"
         "  done\n"
         "  kind=nothing words=\n"
         "  if [[ $word == = ]]; then word=; fi\n"
         "  if ((COMP_CWORD == 1)); then\n"
         "    kind=words words=" +
         shell_word(joined(names)) +
         "\n"
         "    if [[ $word == -* ]]; then words='--help --version'; fi\n"
         "  elif [[ -n $before ]]; then\n"
         "    _xlog_value \"$command\" \"$before\"\n"
         "  elif [[ $word == -* ]] && { [[ $command != run && $command != doctor ]] || ((place == 0)); }; then\n"
         "    case $command in\n" +
         flag_cases(commands) +
         "    esac\n"
         "  else\n"
         "    _xlog_argument \"$command\" \"$place\"\n"
         "  fi\n"
         "  if [[ $kind == command ]] && ((place > 0)); then kind=files; fi\n"
         "  case $kind in\n"
         "    words) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\") ;;\n"
         "    files) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\"; compgen -f -- "
         "\"$word\") ;;\n"
         "    folders) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -d -- \"$word\") ;;\n"
         "    command) compopt -o filenames 2>/dev/null; mapfile -t COMPREPLY < <(compgen -c -- \"$word\"; compgen -d -- \"$word\") ;;\n"
         "  esac\n"
         "}\n"
         "complete -F _xlog xlog\n";
}

}  // namespace xlog::tools
