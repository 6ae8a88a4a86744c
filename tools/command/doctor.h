// `xlog doctor -- COMMAND`: whether the library would load into a program, and what it would see.
#pragma once

#include <string>
#include <vector>

namespace xlog::tools {

struct Finding {
  bool good;
  std::string text;
};

std::vector<Finding> examine(const std::vector<std::string>& command);

}  // namespace xlog::tools
