// What a shell may offer behind `xlog`, made from the commands' own options, and the scripts that teach it to bash, zsh and fish.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace xlog::tools {

// What may stand as a value.
struct Values {
  enum class Kind : uint8_t { nothing, words, files, folders, command };
  Kind kind = Kind::nothing;       // a size or a text, which cannot be foreseen
  std::vector<std::string> words;  // beside files, too
};

struct OptionWords {
  std::vector<std::string> names;  // "--output", "-o"
  bool takes_value = false;
  Values values;
  std::string help;
};

struct CommandWords {
  std::string name;
  std::string help;
  std::vector<OptionWords> options;
  std::vector<Values> arguments;  // by position; the last one may stand again
};

std::vector<CommandWords> command_words(const CLI::App& app);

std::string bash_completion(const std::vector<CommandWords>& commands);
std::string zsh_completion(const std::vector<CommandWords>& commands);
std::string fish_completion(const std::vector<CommandWords>& commands);

}  // namespace xlog::tools
