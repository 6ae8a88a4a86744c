// Values of JSON that somebody else may have written: what is missing, or of another type, is the fallback. Nothing throws.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

namespace xlog::tools {

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
