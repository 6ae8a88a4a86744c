#include "tools/command/completion.h"
#include "tools/command/shell_text.h"

namespace xlog::tools {

namespace {

// Characters that mean something within a specification of _arguments or _describe.
std::string escaped(const std::string& text) {
  std::string out;
  for (char c : text) {
    out += std::string_view("[]:\\").find(c) != std::string_view::npos ? std::string{'\\', c} : std::string(1, c);
  }
  return out;
}

std::string action(const Values& values) {
  std::string words;
  switch (values.kind) {
    case Values::Kind::words:
      for (const std::string& each : values.words) {
        words += (words.empty() ? "" : " ") + escaped(each);
      }
      return "value:(" + words + ")";
    case Values::Kind::files:
      return "file:_files";
    case Values::Kind::folders:
      return "folder:_files -/";
    default:
      return "value: ";
  }
}

std::string specifications(const CommandWords& command) {
  std::string out;
  auto add = [&out](const std::string& text) { out += " \\\n        " + shell_word(text); };
  for (const OptionWords& option : command.options) {
    for (const std::string& name : option.names) {
      std::string value = option.takes_value ? ":" + action(option.values) : "";
      std::string joint = !option.takes_value ? "" : name.starts_with("--") ? "=" : "+";
      add(name + joint + '[' + escaped(option.help) + ']' + value);
    }
  }
  for (size_t i = 0; i < command.arguments.size(); ++i) {
    const Values& values = command.arguments[i];
    bool last = i + 1 == command.arguments.size();
    // The first argument of `_arguments` for a program begins a command line of its own.
    add(values.kind == Values::Kind::command ? "*::program: _normal" : (last ? "*:" : ":") + action(values));
  }
  return out;
}

}  // namespace

std::string zsh_completion(const std::vector<CommandWords>& commands) {
  std::string names;
  std::string cases;
  for (const CommandWords& each : commands) {
    names += "      " + shell_word(escaped(each.name) + ':' + each.help) + '\n';
    cases += "    " + each.name + ")\n      _arguments -S" + specifications(each) + " ;;\n";
  }
  return "#compdef xlog\n"
         "# xlog completion zsh\n"
         "_xlog() {\n"
         "  if (( CURRENT == 2 )); then\n"
         "    local -a commands=(\n" +
         names +
         "    )\n"
         "    _describe -t commands command commands\n"
         "    return\n"
         "  fi\n"
         "  local command=$words[2]\n"
         "  shift words\n"
         "  (( CURRENT-- ))\n"
         "  case $command in\n" +
         cases +
         "  esac\n"
         "}\n"
         "if [[ $funcstack[1] == _xlog ]]; then _xlog \"$@\"; else compdef _xlog xlog; fi\n";
}

}  // namespace xlog::tools
