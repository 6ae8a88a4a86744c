#include "tools/report/lines.h"

#include <algorithm>

namespace xlog::tools {

namespace {

bool begins_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }

std::string styled(const char* code, const std::string& text, const Terminal& terminal) {
  return terminal.colour ? std::string("\x1b[") + code + "m" + text + "\x1b[0m" : text;
}

}  // namespace

size_t columns_of(std::string_view text) {
  size_t columns = 0;
  for (char c : text) {
    columns += begins_character(c) ? 1 : 0;
  }
  return columns;
}

std::string shortened(const std::string& text, size_t width) {
  if (columns_of(text) <= width) {
    return text;
  }
  size_t columns = 0;
  size_t end = 0;
  while (end < text.size() && (!begins_character(text[end]) || ++columns < width)) {
    ++end;
  }
  return text.substr(0, end) + "…";
}

std::string shortened_in_the_middle(const std::string& text, size_t width) {
  if (columns_of(text) <= width || width < 3) {
    return shortened(text, width);
  }
  size_t tail = (width - 1) / 2;
  size_t begin = text.size();
  for (size_t columns = 0; columns < tail; columns += begins_character(text[begin]) ? 1 : 0) {
    --begin;
  }
  return shortened(text, width - tail) + text.substr(begin);
}

std::vector<std::string> wrapped(const std::string& text, size_t width, const std::string& indent) {
  std::vector<std::string> lines;
  std::string line;
  for (size_t begin = 0; begin <= text.size();) {
    size_t end = std::min(text.find(' ', begin), text.size());
    std::string word = text.substr(begin, end - begin);
    if (!line.empty() && columns_of(line) + 1 + columns_of(word) > width) {
      lines.push_back(line);
      line = indent + word;
    } else {
      line += (begin == 0 ? "" : " ") + word;
    }
    begin = end + 1;
  }
  lines.push_back(line);
  return lines;
}

std::string bold(const std::string& text, const Terminal& terminal) { return styled("1", text, terminal); }
std::string red(const std::string& text, const Terminal& terminal) { return styled("1;31", text, terminal); }
std::string faint(const std::string& text, const Terminal& terminal) { return styled("2", text, terminal); }

}  // namespace xlog::tools
