#include "tools/command/library_options.h"

#include <algorithm>
#include <type_traits>

namespace xlog::tools {

namespace {

enum class ValueKind : uint8_t { words, is_switch, path, text };

template <class Type>
constexpr ValueKind kind_of() {
  return std::is_same_v<Type, Flag>        ? ValueKind::is_switch
         : std::is_same_v<Type, PathText>  ? ValueKind::path
         : std::is_same_v<Type, ShortText> ? ValueKind::text
                                           : ValueKind::words;
}

constexpr ValueKind kKinds[] = {
#define XLOG_OPTION(type, name, field, fallback, strict, form, help) kind_of<type>(),
#include "runtime/base/options.def"
#undef XLOG_OPTION
};

// Shorter names that people look for; they stand before the variable's own.
struct Alias {
  std::string_view variable;
  std::string_view flag;
};
constexpr Alias kAliases[] = {{"XLOG_BUDGET", "--limit"}, {"XLOG_LOG_SAMPLE", "--sample"}};

std::string flags_of(std::string_view variable) {
  std::string own = "--";
  for (char c : variable.substr(std::string_view("XLOG_").size())) {
    own += c == '_' ? '-' : static_cast<char>(c - 'A' + 'a');
  }
  for (const Alias& each : kAliases) {
    if (each.variable == variable) {
      return std::string(each.flag) + ',' + own;
    }
  }
  return own;
}

// The named values stand in the text that says how the value is given: "off, canary, canary:bytes with 16 to 4096 bytes, or
// fence with any of ...". Each that begins a part of it and that the parser takes is one. A path or a text takes anything, so
// there only a part that is one word counts.
std::vector<std::string> words_of(const OptionRow& row, ValueKind kind) {
  std::vector<std::string> words;
  std::string form(row.form);
  for (size_t at = 0; at < form.size();) {
    size_t comma = form.find(", ", at);
    size_t either = form.find(" or ", at);
    size_t end = std::min({comma, either, form.size()});
    std::string part = form.substr(at, end - at);
    at = end == form.size() ? end : end + (end == comma ? 2 : 4);
    part = part.starts_with("or ") ? part.substr(3) : part;
    std::string word = part.substr(0, part.find(' '));
    bool free = kind == ValueKind::path || kind == ValueKind::text;
    bool named = !word.empty() && (word[0] < '0' || word[0] > '9' || kind == ValueKind::is_switch);
    if (named && (!free || word == part) && value_trouble(row.name, word).empty()) {
      words.push_back(word);
    }
  }
  return words;
}

std::string_view asked_name;
const std::string* asked_value = nullptr;
std::string answer;

}  // namespace

std::string value_trouble(std::string_view variable, const std::string& value) {
  asked_name = variable;  // the parser's callbacks have no place for a pointer
  asked_value = &value;
  answer.clear();
  Options unused;
  parse_options([](const char* name) -> const char* { return asked_name == name ? asked_value->c_str() : nullptr; },
                [](std::string_view line, bool) { answer = line; }, unused);
  // "NAME=value: reason; give ...; no GPU work is started": the middle of it is meant here.
  for (std::string_view tail : {"; no GPU work is started", "; ignored"}) {
    answer = answer.ends_with(tail) ? answer.substr(0, answer.size() - tail.size()) : answer;
  }
  size_t head = answer.find(": ", std::min(answer.size(), variable.size() + 1 + std::min<size_t>(value.size(), 200)));
  return head == answer.npos ? answer : answer.substr(head + 2);
}

const std::vector<LibraryOption>& library_options() {
  static const std::vector<LibraryOption> all = [] {
    std::vector<LibraryOption> out;
    for (size_t i = 0; i < std::size(kOptions); ++i) {
      const OptionRow& row = kOptions[i];
      out.push_back({.row = &row,
                     .flags = flags_of(row.name),
                     .is_switch = kKinds[i] == ValueKind::is_switch,
                     .is_path = kKinds[i] == ValueKind::path,
                     .words = words_of(row, kKinds[i])});
    }
    return out;
  }();
  return all;
}

}  // namespace xlog::tools
