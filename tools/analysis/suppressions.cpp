#include "tools/analysis/suppressions.h"

#include <sstream>

#include "tools/log/text_file.h"

namespace xlog::tools {

namespace {

// A pattern of `*` and other characters, against the whole text.
bool matches_whole(std::string_view pattern, std::string_view text) {
  size_t p = 0;
  size_t t = 0;
  size_t star = pattern.npos;
  size_t retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != pattern.npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  bool begins = pattern.starts_with('^');
  bool ends = pattern.ends_with('$');
  std::string whole(pattern.substr(begins ? 1 : 0, pattern.size() - (begins ? 1 : 0) - (ends ? 1 : 0)));
  return matches_whole((begins ? "" : "*") + whole + (ends ? "" : "*"), text);
}

void Suppressions::read(const std::string& path, std::vector<std::string>& problems) {
  std::string text;
  std::string problem;
  if (!read_text_file(path, text, problem)) {
    problems.push_back(problem);
    return;
  }
  std::istringstream in(text);
  std::string line;
  for (size_t number = 1; std::getline(in, line); ++number) {
    size_t begin = line.find_first_not_of(" \t");
    size_t end = line.find_last_not_of(" \t\r");
    std::string entry = begin == line.npos ? "" : line.substr(begin, end - begin + 1);
    if (entry.empty() || entry[0] == '#') {
      continue;
    }
    constexpr std::string_view kLeak = "leak:";
    if (!entry.starts_with(kLeak) || entry.size() == kLeak.size()) {
      problems.push_back(path + ':' + std::to_string(number) + ": not of the form leak:PATTERN");
      continue;
    }
    patterns_.push_back(entry.substr(kLeak.size()));
  }
}

bool Suppressions::match(const Stack* stack) const {
  if (stack == nullptr) {
    return false;
  }
  for (const Frame* frame : stack->frames) {
    for (const std::string& pattern : patterns_) {
      bool matched = (!frame->function.empty() && matches_pattern(pattern, frame->function)) ||
                     (!frame->file.empty() && matches_pattern(pattern, frame->file)) || matches_pattern(pattern, frame->module);
      if (matched) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace xlog::tools
