#include "runtime/base/command_line.h"

namespace xlog {

namespace {

bool is_safe(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("_-./=:,+@%").find(c) != std::string_view::npos;
}

}  // namespace

void put_shell_word(TextSink& out, std::string_view word) noexcept {
  bool safe = !word.empty();
  for (char c : word) {
    safe = safe && is_safe(c);
  }
  if (safe) {
    out.put(word);
    return;
  }
  out.put('\'');
  for (char c : word) {
    auto byte = static_cast<unsigned char>(c);
    if (c == '\'') {
      out.put("'\\''");
    } else {
      out.put(byte < 0x20 || byte == 0x7f ? '?' : c);  // a line stays one line
    }
  }
  out.put('\'');
}

void put_command_line(TextSink& out) noexcept {
  std::string_view between;
  each_argument([&](std::string_view word) noexcept {
    out.put(between);
    put_shell_word(out, word);
    between = " ";
  });
}

}  // namespace xlog
