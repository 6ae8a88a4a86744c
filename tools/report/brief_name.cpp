#include "tools/report/brief_name.h"

#include <cctype>
#include <string_view>

namespace xlog::tools {

namespace {

void erase_all(std::string& text, std::string_view what) {
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at)) {
    text.erase(at, what.size());
  }
}

void erase_clones(std::string& text) {
  for (size_t at = text.find(" [clone "); at != text.npos; at = text.find(" [clone ", at)) {
    size_t end = text.find(']', at);
    text.erase(at, end == text.npos ? end : end + 1 - at);
  }
}

// Behind the bracket that closes the one at `at`; where a long name was cut before it, behind the dots of the cut. npos: neither.
size_t end_of_brackets(const std::string& text, size_t at) {
  size_t depth = 0;
  for (size_t i = at; i < text.size(); ++i) {
    bool is_arrow = i > 0 && text[i] == '>' && text[i - 1] == '-';
    depth += text[i] == '(' || text[i] == '<' ? 1 : 0;
    depth -= (text[i] == ')' || text[i] == '>') && !is_arrow ? 1 : 0;
    if (depth == 0) {
      return i + 1;
    }
    if (text.compare(i, 4, "... ") == 0) {
      return i + 3;
    }
  }
  return text.npos;
}

// A name's own brackets stand behind a letter and before its end: others belong to a path, or to an operator.
bool begins_arguments(const std::string& text, size_t at) {
  unsigned char before = at > 0 ? static_cast<unsigned char>(text[at - 1]) : ' ';
  return (text[at] == '(' || text[at] == '<') && (std::isalnum(before) != 0 || before == '_' || before == '>');
}

}  // namespace

std::string brief_name(const std::string& name) {
  std::string text = name;
  erase_all(text, "(anonymous namespace)::");
  erase_clones(text);
  for (size_t at = 0; at < text.size(); ++at) {
    size_t end = begins_arguments(text, at) ? end_of_brackets(text, at) : text.npos;
    bool is_whole = end != text.npos && (end == text.size() || text[end] == ' ' || text[end] == ':' || text[end] == '(');
    if (is_whole) {
      text.erase(at, end - at);
      --at;
    }
  }
  return text;
}

}  // namespace xlog::tools
