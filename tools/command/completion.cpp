#include "tools/command/completion.h"

#include <algorithm>
#include <cctype>

namespace xlog::tools {

namespace {

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(at, begin), text.size());
    if (end != begin) {
      parts.push_back(text.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return parts;
}

// The name of an option's type says it: FILE, FOLDER, COMMAND, "peak|live", or what a check of members adds, "TEXT:{on,off}".
Values values_of(const CLI::Option& option) {
  std::string type = option.get_type_name();
  size_t open = type.find('{');
  if (open != type.npos) {
    size_t close = std::min(type.find('}', open), type.size());
    return {Values::Kind::words, split(type.substr(open + 1, close - open - 1), ',')};
  }
  if (type == "FILE" || type == "PATH" || type == "LOG") {
    return {Values::Kind::files, {}};
  }
  if (type == "FOLDER" || type == "COMMAND") {
    return {type == "FOLDER" ? Values::Kind::folders : Values::Kind::command, {}};
  }
  if (type.ends_with("|PATH")) {
    return {Values::Kind::files, split(type.substr(0, type.rfind('|')), '|')};
  }
  bool named = !type.empty() && std::islower(static_cast<unsigned char>(type[0])) != 0;
  return named ? Values{Values::Kind::words, split(type, '|')} : Values{};
}

// The first part of a description, short enough to stand beside a word.
std::string short_help(const std::string& text) {
  constexpr size_t kMost = 70;
  std::string first = text.substr(0, text.find_first_of(";(\n"));
  if (first.size() > kMost) {
    first = first.substr(0, first.rfind(' ', kMost)) + " ...";
  }
  while (first.ends_with(' ')) {
    first.pop_back();
  }
  return first;
}

}  // namespace

std::vector<CommandWords> command_words(const CLI::App& app) {
  std::vector<CommandWords> out;
  for (const CLI::App* command : app.get_subcommands({})) {
    CommandWords words{.name = command->get_name(), .help = short_help(command->get_description()), .options = {}, .arguments = {}};
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_positional()) {
        words.arguments.push_back(values_of(*option));
        continue;
      }
      OptionWords one;
      for (const std::string& name : option->get_lnames()) {
        one.names.push_back("--" + name);
      }
      for (const std::string& name : option->get_snames()) {
        one.names.push_back("-" + name);
      }
      one.takes_value = option->get_items_expected_max() > 0;
      one.values = one.takes_value ? values_of(*option) : Values{};
      one.help = short_help(option->get_description());
      words.options.push_back(std::move(one));
    }
    out.push_back(std::move(words));
  }
  return out;
}

}  // namespace xlog::tools
