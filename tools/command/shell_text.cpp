#include "tools/command/shell_text.h"

namespace xlog::tools {

namespace {

bool is_safe(std::string_view text) {
  for (char c : text) {
    bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                std::string_view("_-./=:,+@%").find(c) != std::string_view::npos;
    if (!good) {
      return false;
    }
  }
  return !text.empty();
}

}  // namespace

std::string shell_word(std::string_view text) {
  if (is_safe(text)) {
    return std::string(text);
  }
  std::string out = "'";
  for (char c : text) {
    out += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return out + "'";
}

std::string fish_word(std::string_view text) {
  if (is_safe(text)) {
    return std::string(text);
  }
  std::string out = "'";
  for (char c : text) {
    out += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  }
  return out + "'";
}

}  // namespace xlog::tools
