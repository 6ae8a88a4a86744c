#include "tools/command/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

namespace xlog::tools {

namespace {

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

}  // namespace

Terminal terminal_of(const std::string& colour) {
  constexpr size_t kLeast = 40;
  constexpr size_t kMost = 500;
  Terminal terminal;
  winsize size{};
  const char* columns = std::getenv("COLUMNS");
  size_t width = columns != nullptr ? std::strtoul(columns, nullptr, 10) : 0;
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col != 0) {
    width = size.ws_col;
  }
  if (width != 0) {
    terminal.width = std::max(kLeast, std::min(kMost, width));
  }
  const char* term = std::getenv("TERM");
  bool can = isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb" && !is_set("NO_COLOR");
  terminal.colour = colour == "always" || (colour == "auto" && can);
  return terminal;
}

}  // namespace xlog::tools
