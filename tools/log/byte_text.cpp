#include "tools/log/byte_text.h"

#include "runtime/record/row_writer.h"

namespace xlog::tools {

namespace {

int hex_value(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

// C0, DEL and, in UTF-8, C1.
bool is_control(std::string_view character) {
  auto first = static_cast<unsigned char>(character[0]);
  return first < 0x20 || first == 0x7f || (character.size() == 2 && first == 0xc2 && static_cast<unsigned char>(character[1]) < 0xa0);
}

std::string escaped(std::string_view bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string out;
  for (char each : bytes) {
    auto c = static_cast<unsigned char>(each);
    out += {'\\', 'x', kDigits[c >> 4], kDigits[c & 15]};
  }
  return out;
}

}  // namespace

std::string whole_field(std::string_view text) {
  std::string out(4 * text.size() + 2, '\0');
  TextSink sink(out.data(), out.size());
  put_whole_field(sink, text);
  out.resize(sink.size());
  return out;
}

std::string from_field(std::string_view field) {
  std::string out;
  out.reserve(field.size());
  for (size_t i = 0; i < field.size(); ++i) {
    bool is_escape = field[i] == '\\' && i + 3 < field.size() && field[i + 1] == 'x';
    int high = is_escape ? hex_value(field[i + 2]) : -1;
    int low = is_escape ? hex_value(field[i + 3]) : -1;
    if (high >= 0 && low >= 0) {
      out += static_cast<char>(high * 16 + low);
      i += 3;
    } else {
      out += field[i];
    }
  }
  return out;
}

std::string printable(std::string_view text, size_t limit) {
  constexpr std::string_view kCut = "...";
  std::string out;
  size_t fits = 0;  // of what was written, so that the mark fits behind it
  for (size_t i = 0; i < text.size();) {
    size_t length = utf8_length(text, i);
    std::string_view character = text.substr(i, length != 0 ? length : 1);
    out += length == 0 || is_control(character) ? escaped(character) : std::string(character);
    i += character.size();
    if (out.size() > limit) {
      return out.substr(0, fits) + std::string(kCut);
    }
    fits = out.size() + kCut.size() <= limit ? out.size() : fits;
  }
  return out;
}

}  // namespace xlog::tools
