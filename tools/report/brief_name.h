// Names of holders for lines that have little room.
#pragma once

#include <string>

namespace xlog::tools {

// The name without the parameters and template arguments of its functions, "(anonymous namespace)::" and " [clone ...]":
// "load(int) app.cpp:12 <- (anonymous namespace)::run() app.cpp:30" becomes "load app.cpp:12 <- run app.cpp:30". Two names may become
// the same.
std::string brief_name(const std::string& name);

}  // namespace xlog::tools
