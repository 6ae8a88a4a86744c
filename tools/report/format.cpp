#include "tools/report/format.h"

#include <cstdio>

#include "runtime/base/size_text.h"

namespace xlog::tools {

std::string size_text(uint64_t bytes) {
  Text<32> out;
  put_size(out, bytes);
  return std::string(out.view());
}

std::string count_text(uint64_t n) {
  std::string digits = std::to_string(n);
  for (size_t i = digits.size(); i > 3; i -= 3) {
    digits.insert(i - 3, ",");
  }
  return digits;
}

std::string time_text(uint64_t ns) {
  static constexpr struct {
    double scale;
    const char* unit;
  } kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}, {1, "ns"}};
  char out[32];
  for (const auto& each : kUnits) {
    double value = static_cast<double>(ns) / each.scale;
    if (value >= 1 || each.scale == 1) {
      std::snprintf(out, sizeof out, each.scale == 1 ? "%.0f %s" : "%.1f %s", value, each.unit);
      break;
    }
  }
  return out;
}

std::string share_text(uint64_t part, uint64_t whole) {
  char out[32];
  double share = whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
  std::snprintf(out, sizeof out, share > 0 && share < 1 ? "%.2f %%" : "%.1f %%", share);
  return out;
}

std::string hex_text(uint64_t value) {
  char out[24];
  std::snprintf(out, sizeof out, "0x%lx", value);
  return out;
}

std::string plural(uint64_t n, const char* word) { return count_text(n) + ' ' + word + (n == 1 ? "" : "s"); }

}  // namespace xlog::tools
