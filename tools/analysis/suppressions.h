// Leaks that are known and accepted, in LeakSanitizer's form: a line `leak:PATTERN` each, where the pattern is part of a
// function's name, of a file or of a library in the stack; `*` stands for anything, `^` and `$` for the ends.
#pragma once

#include <string>
#include <vector>

#include "tools/log/stacks.h"

namespace xlog::tools {

class Suppressions {
 public:
  // `problems` receives a line, with file and number, for each that cannot be read.
  void read(const std::string& path, std::vector<std::string>& problems);
  [[nodiscard]] bool empty() const { return patterns_.empty(); }
  [[nodiscard]] bool match(const Stack* stack) const;

 private:
  std::vector<std::string> patterns_;
};

// The pattern matches somewhere in the text.
bool matches_pattern(std::string_view pattern, std::string_view text);

}  // namespace xlog::tools
