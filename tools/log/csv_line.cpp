#include "tools/log/csv_line.h"

#include <charconv>
#include <cstring>

namespace xlog {

bool CsvLine::split(std::string_view line) {
  fields_.clear();
  scratch_.clear();
  scratch_.reserve(line.size());  // views into it stay valid
  size_t at = 0;
  for (;;) {
    if (fields_.size() == kMaxFields) {
      return false;
    }
    if (at < line.size() && line[at] == '"') {
      size_t start = scratch_.size();
      for (++at;; ++at) {
        if (at >= line.size()) {
          return false;
        }
        if (line[at] == '"') {
          if (at + 1 < line.size() && line[at + 1] == '"') {
            ++at;
          } else {
            break;
          }
        }
        scratch_.push_back(line[at]);
      }
      fields_.push_back(std::string_view(scratch_).substr(start));
      ++at;
      if (at < line.size() && line[at] != ',') {
        return false;
      }
    } else {
      const void* comma = at < line.size() ? std::memchr(line.data() + at, ',', line.size() - at) : nullptr;
      size_t end = comma == nullptr ? line.size() : static_cast<size_t>(static_cast<const char*>(comma) - line.data());
      fields_.push_back(line.substr(at, end - at));
      at = end;
    }
    if (at >= line.size()) {
      return true;
    }
    ++at;  // the comma
  }
}

namespace {
std::optional<uint64_t> parse(std::string_view text, int base) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}
}  // namespace

std::optional<uint64_t> parse_decimal(std::string_view text) { return parse(text, 10); }

std::optional<uint64_t> parse_hex(std::string_view text) { return text.starts_with("0x") ? parse(text.substr(2), 16) : std::nullopt; }

}  // namespace xlog
