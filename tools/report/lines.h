// Lines of text for a terminal of some width.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace xlog::tools {

struct Terminal {
  size_t width = 100;  // columns
  bool colour = false;
};

// Columns that a text takes: its UTF-8 characters.
size_t columns_of(std::string_view text);
// The text, or as much of it as fits and "…".
std::string shortened(const std::string& text, size_t width);
// The same, with "…" in its middle: of a path or a name the end matters as well.
std::string shortened_in_the_middle(const std::string& text, size_t width);
// The text in lines of at most `width` columns, broken at spaces; all but the first begin with `indent`.
std::vector<std::string> wrapped(const std::string& text, size_t width, const std::string& indent);
// In a style of the terminal, where it has colours.
std::string bold(const std::string& text, const Terminal& terminal);
std::string red(const std::string& text, const Terminal& terminal);
std::string faint(const std::string& text, const Terminal& terminal);

}  // namespace xlog::tools
