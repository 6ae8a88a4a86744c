#include "tools/report/safe_text.h"

#include <cstdint>
#include <cstdio>

namespace xlog::tools {

namespace {

struct Character {
  uint32_t code = 0;
  size_t size = 1;  // bytes
  bool good = false;
};

// The character that `text` begins with, by the table of well-formed sequences of the Unicode standard. Where the bytes are none,
// the first byte alone.
Character first_character(std::string_view text) {
  auto byte = [&](size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  auto follows = [&](size_t i) { return (byte(i) & 0xC0U) == 0x80U; };
  uint32_t lead = byte(0);
  if (lead < 0x80) {
    return {lead, 1, true};
  }
  if (lead >= 0xC2 && lead <= 0xDF && follows(1)) {
    return {(lead & 0x1FU) << 6 | (byte(1) & 0x3FU), 2, true};
  }
  if ((lead & 0xF0U) == 0xE0 && follows(1) && follows(2)) {
    uint32_t code = (lead & 0x0FU) << 12 | (byte(1) & 0x3FU) << 6 | (byte(2) & 0x3FU);
    bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
    if (code >= 0x800 && !is_surrogate) {
      return {code, 3, true};
    }
  }
  if (lead >= 0xF0 && lead <= 0xF4 && follows(1) && follows(2) && follows(3)) {
    uint32_t code = (lead & 0x07U) << 18 | (byte(1) & 0x3FU) << 12 | (byte(2) & 0x3FU) << 6 | (byte(3) & 0x3FU);
    if (code >= 0x10000 && code <= 0x10FFFF) {
      return {code, 4, true};
    }
  }
  return {lead, 1, false};
}

bool is_control(uint32_t code) { return code < 0x20 || (code >= 0x7F && code <= 0x9F); }

// Marks, embeddings, overrides and isolates of text that runs from right to left, and the separators of lines and paragraphs.
bool moves_text(uint32_t code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) || (code >= 0x2066 && code <= 0x2069);
}

std::string formatted(const char* form, uint32_t code) {
  char out[16];
  std::snprintf(out, sizeof out, form, code);
  return out;
}

std::string escaped(const Character& character) {
  switch (character.code) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return formatted(character.good && character.code >= 0x80 ? "\\u%04x" : "\\x%02x", character.code);
  }
}

std::string for_terminal(std::string_view text, bool keeps_lines) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    Character next = first_character(text.substr(at));
    bool kept = keeps_lines && (next.code == '\n' || next.code == '\t');
    bool safe = next.good && (kept || (!is_control(next.code) && !moves_text(next.code)));
    out += safe ? std::string(text.substr(at, next.size)) : escaped(next);
    at += next.size;
  }
  return out;
}

// GitHub's own rules: https://github.com/actions/toolkit, core/src/command.ts.
std::string for_github(std::string_view text, bool is_property) {
  std::string out;
  for (char c : terminal_text(text)) {
    bool separates = is_property && (c == ':' || c == ',');
    out += c == '%' || c == '\n' || separates ? "%" + formatted("%02X", static_cast<unsigned char>(c)) : std::string(1, c);
  }
  return out;
}

std::string rewritten_json(std::string_view json, bool is_in_script) {
  std::string out;
  out.reserve(json.size());
  for (size_t at = 0; at < json.size();) {
    Character next = first_character(json.substr(at));
    bool is_space = next.code == '\n' || next.code == '\t';  // between values: in a string the writer has escaped it
    bool acts = (is_control(next.code) && !is_space) || moves_text(next.code) || (is_in_script && next.code == '<');
    out += acts ? formatted("\\u%04x", next.code) : std::string(json.substr(at, next.size));
    at += next.size;
  }
  return out;
}

}  // namespace

std::string terminal_text(std::string_view text) { return for_terminal(text, true); }

std::string terminal_line(std::string_view text) { return for_terminal(text, false); }

std::string github_error(std::string_view title, std::string_view message) {
  return "::error title=" + for_github(title, true) + "::" + for_github(message, false);
}

std::string json_for_terminal(std::string_view json) { return rewritten_json(json, false); }

std::string json_for_script(std::string_view json) { return rewritten_json(json, true); }

}  // namespace xlog::tools
