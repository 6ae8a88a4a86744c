#include "tools/log/json_value.h"

#include "tools/log/text_file.h"

namespace xlog::tools {

using nlohmann::json;

namespace {

// Of brackets outside of strings, without building anything.
bool is_deeper_than(std::string_view text, size_t most) {
  size_t depth = 0;
  bool in_string = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (in_string) {
      i += c == '\\' ? 1 : 0;
      in_string = c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > most) {
        return true;
      }
    } else if (c == ']' || c == '}') {
      depth -= depth != 0 ? 1 : 0;
    }
  }
  return false;
}

}  // namespace

json parse_json(std::string_view text, std::string& problem) {
  json out(json::value_t::discarded);
  if (text.size() > kJsonBytes) {
    problem = "larger than " + std::to_string(kJsonBytes >> 20) + " MiB";
  } else if (is_deeper_than(text, kJsonDepth)) {
    problem = "nested deeper than " + std::to_string(kJsonDepth) + " levels";
  } else {
    out = json::parse(text, nullptr, false);
    problem = out.is_discarded() ? "not JSON" : "";
  }
  return out;
}

json read_json_file(const std::string& path, size_t most, std::string& problem) {
  std::string text;
  return read_text_file(path, text, problem, most) ? parse_json(text, problem) : json(json::value_t::discarded);
}

}  // namespace xlog::tools
