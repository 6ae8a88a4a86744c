// One line of RFC 4180, and the numbers in it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace xlog {

// Quoted fields are unquoted into memory of the object's own: views are good until the next split.
class CsvLine {
 public:
  static constexpr size_t kMaxFields = 1024;
  // False when a quoted field is not closed or there are too many fields.
  bool split(std::string_view line);
  [[nodiscard]] size_t size() const { return fields_.size(); }
  [[nodiscard]] std::string_view operator[](size_t i) const { return i < fields_.size() ? fields_[i] : std::string_view(); }

 private:
  std::vector<std::string_view> fields_;
  std::string scratch_;
};

// The text for a size that has no number is std::nullopt; so is anything that is not a number.
std::optional<uint64_t> parse_decimal(std::string_view text);
std::optional<uint64_t> parse_hex(std::string_view text);  // 0x...

}  // namespace xlog
