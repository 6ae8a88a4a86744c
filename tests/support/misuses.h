// The programs of tests/programs/misuse, what is to be found in each, and what was.
#pragma once

#include <regex>
#include <sstream>

#include "support/process.h"

namespace xlog::test {

struct Misuse {
  std::string name, canary, quarantine, fence;
};

inline std::vector<Misuse> misuses() {
  std::vector<Misuse> all;
  std::istringstream table(slurp("tests/programs/misuse.tsv"));
  for (std::string line; std::getline(table, line);) {
    std::istringstream fields(line);
    Misuse each;
    if (line[0] != '#' && std::getline(fields, each.name, '\t') && std::getline(fields, each.canary, '\t')) {
      std::getline(fields, each.quarantine, '\t');
      std::getline(fields, each.fence, '\t');
      all.push_back(each);
    }
  }
  return all;
}

// Names of the findings on stderr, in order; `-` for none.
inline std::string findings(const std::string& err) {
  static const std::regex kFinding("(^|\n)xlog: guard: ([a-z-]+): ");
  std::string names;
  for (std::sregex_iterator it(err.begin(), err.end(), kFinding), end; it != end; ++it) {
    names += (names.empty() ? "" : " ") + (*it)[2].str();
  }
  return names.empty() ? "-" : names;
}

inline Outcome misuse(const std::string& name, const Environment& with) { return run_with_library({program("misuse/" + name)}, with); }

inline std::string without_line(const std::string& text, const std::string& start) {
  std::string out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    out += line.starts_with(start) ? "" : line + '\n';
  }
  return out;
}

}  // namespace xlog::test
