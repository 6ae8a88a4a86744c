// JSON that somebody else may have written: it is read within bounds, and what is missing, or of another type, is the fallback.
// Nothing here throws.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace xlog::tools {

// What nests deeper than kJsonDepth is refused: values are copied, written and ended by calls within calls. So is text that is
// larger than kJsonBytes.
inline constexpr size_t kJsonDepth = 64;
inline constexpr size_t kJsonBytes = 64 << 20;
// A discarded value (is_discarded()), and a few words in `problem`, where the text is refused or is no JSON.
nlohmann::json parse_json(std::string_view text, std::string& problem);
// The same of a file, which must be a regular one. `most`: bytes.
nlohmann::json read_json_file(const std::string& path, size_t most, std::string& problem);

inline nlohmann::json json_value(const nlohmann::json& from, const char* name) {
  auto found = from.is_object() ? from.find(name) : from.end();
  return from.is_object() && found != from.end() ? *found : nlohmann::json();
}
inline uint64_t json_number(const nlohmann::json& from, const char* name, uint64_t fallback) {
  const nlohmann::json value = json_value(from, name);
  return value.is_number_unsigned() ? value.get<uint64_t>() : fallback;
}
inline std::string json_string(const nlohmann::json& from, const char* name) {
  const nlohmann::json value = json_value(from, name);
  return value.is_string() ? value.get<std::string>() : std::string();
}
inline bool json_flag(const nlohmann::json& from, const char* name) {
  const nlohmann::json value = json_value(from, name);
  return value.is_boolean() && value.get<bool>();
}
// An empty array where it is none.
inline nlohmann::json json_list(const nlohmann::json& from, const char* name) {
  nlohmann::json value = json_value(from, name);
  return value.is_array() ? value : nlohmann::json::array();
}

}  // namespace xlog::tools
