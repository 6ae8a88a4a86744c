#include "tools/log/frame_text.h"

#include <cctype>
#include <cstdio>

#include "tools/log/byte_text.h"

namespace xlog::tools {

namespace {

bool is_part_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }

// Behind the bracket that closes the one at `open`; the end of the text when there is none.
size_t behind_bracket(std::string_view text, size_t open) {
  char opening = text[open];
  char closing = opening == '(' ? ')' : opening == '<' ? '>' : opening == '[' ? ']' : '}';
  size_t depth = 0;
  for (size_t i = open; i < text.size(); ++i) {
    bool arrow = closing == '>' && text[i] == '>' && text[i - 1] == '-';
    if (text[i] == opening) {
      ++depth;
    } else if (text[i] == closing && !arrow && --depth == 0) {
      return i + 1;
    }
  }
  return text.size();
}

// Behind the parameters that begin at `open`, when the name of something inside that function follows; else npos.
size_t inside_function(std::string_view text, size_t open) {
  size_t at = behind_bracket(text, open);
  for (std::string_view each : {" const", " volatile", " &", "&"}) {
    at += text.substr(at).starts_with(each) ? each.size() : 0;
  }
  while (at < text.size() && text[at] == '[') {
    at = behind_bracket(text, at);
  }
  return text.substr(at).starts_with("::") ? at : text.npos;
}

// Of `operator` and what follows it; 0 when `text` does not begin with an operator's name.
size_t operator_size(std::string_view text) {
  constexpr std::string_view kOperator = "operator";
  if (!text.starts_with(kOperator) || text.size() == kOperator.size() || is_part_of_name(text[kOperator.size()])) {
    return 0;
  }
  size_t at = kOperator.size();
  if (text.substr(at).starts_with("()")) {
    return at + 2;
  }
  size_t end = text.find('(', at);
  return end == text.npos ? text.size() : end;
}

}  // namespace

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string plain_function(std::string_view text) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::string out;
  for (size_t i = 0; i < text.size();) {
    bool begins_name = out.empty() || out.back() == ':';
    size_t size = begins_name ? operator_size(text.substr(i)) : 0;
    if (size != 0) {
      out += text.substr(i, size);
      i += size;
    } else if (text.substr(i).starts_with(kAnonymous)) {
      out += kAnonymous;
      i += kAnonymous.size();
    } else if (text[i] == '(') {
      bool is_type = out.empty() || out == "decltype";
      size_t next = is_type ? behind_bracket(text, i) : inside_function(text, i);
      if (next == text.npos) {
        return out;
      }
      out = is_type ? "" : out;
      i = next;
    } else if (text[i] == '{') {
      size_t end = behind_bracket(text, i);
      out += text.substr(i, end - i);
      i = end;
    } else if (text[i] == '<' && !out.empty()) {
      i = behind_bracket(text, i);
    } else if (text[i] == '[') {
      i = behind_bracket(text, i);
    } else if (text[i] == ' ') {
      if (text.substr(i).starts_with(" [")) {
        return out;
      }
      out.clear();  // it was the return type
      ++i;
    } else {
      out += text[i++];
    }
  }
  return out;
}

std::string name_of(const Frame& frame) {
  constexpr size_t kLongest = 100;
  if (!frame.function.empty()) {
    return printable(frame.function, kLongest);
  }
  char offset[32];
  std::snprintf(offset, sizeof offset, "+0x%lx", frame.offset);
  return printable(base_name(frame.module)) + offset;
}

std::string where_of(const Frame& frame) {
  if (!frame.file.empty()) {
    return printable(base_name(frame.file)) + ':' + std::to_string(frame.line);
  }
  return printable(base_name(frame.module));
}

}  // namespace xlog::tools
