#include "tools/analysis/moment.h"

#include <charconv>
#include <cmath>

namespace xlog::tools {

std::optional<uint64_t> parse_moment(const std::string& text, uint64_t first_time) {
  double number = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string unit(end, text.data() + text.size());
  if (error != std::errc() || !std::isfinite(number) || number < 0) {
    return std::nullopt;
  }
  if (unit.empty()) {
    uint64_t exact = 0;
    auto [rest, wrong] = std::from_chars(text.data(), text.data() + text.size(), exact);
    return wrong == std::errc() && rest == text.data() + text.size() ? std::optional(exact) : std::nullopt;
  }
  double scale = unit == "s" ? 1e9 : unit == "ms" ? 1e6 : unit == "us" ? 1e3 : unit == "ns" ? 1 : 0;
  bool fits = scale != 0 && number * scale < 1e18;
  return fits ? std::optional(first_time + static_cast<uint64_t>(std::llround(number * scale))) : std::nullopt;
}

}  // namespace xlog::tools
