// The options of the preloaded library as flags of the command: made from the one list, runtime/base/options.def.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/options.h"

namespace xlog::tools {

struct LibraryOption {
  const OptionRow* row;
  std::string flags;  // "--limit,--budget": the first is the one to show
  bool is_switch;     // 0 or 1; the flag alone means 1
  bool is_path;
  std::vector<std::string> words;  // the values that have a name, such as "native" and "async"
};

const std::vector<LibraryOption>& library_options();

// Why the library would not take this value for the variable; empty when it would.
std::string value_trouble(std::string_view variable, const std::string& value);

}  // namespace xlog::tools
