#include "runtime/base/size_text.h"

namespace xlog {

namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
char lower(char c) noexcept { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

// A decimal number as an integer and a fraction in millionths.
struct Number {
  uint64_t whole = 0;
  uint32_t millionths = 0;
  size_t length = 0;
  SizeError error = SizeError::none;
};

Number read_number(std::string_view text) noexcept {
  Number n;
  size_t i = 0;
  while (i < text.size() && is_digit(text[i])) {
    if (__builtin_mul_overflow(n.whole, uint64_t{10}, &n.whole) ||
        __builtin_add_overflow(n.whole, static_cast<uint64_t>(text[i] - '0'), &n.whole)) {
      n.error = SizeError::too_large;
      return n;
    }
    ++i;
  }
  if (i == 0) {
    n.error = SizeError::not_a_size;
    return n;
  }
  if (i > 1 && text[0] == '0') {
    n.error = SizeError::leading_zero;
    return n;
  }
  if (i < text.size() && text[i] == '.') {
    size_t first = ++i;
    uint32_t scale = 100'000;
    while (i < text.size() && is_digit(text[i])) {
      n.millionths += static_cast<uint32_t>(text[i] - '0') * scale;
      scale /= 10;
      ++i;
    }
    if (i == first || i - first > 6) {
      n.error = SizeError::not_a_size;
      return n;
    }
  }
  n.length = i;
  return n;
}

// log2 of the unit's factor, or -1.
int read_unit(std::string_view unit) noexcept {
  if (unit.size() == 1 && lower(unit[0]) == 'b') {
    return 0;
  }
  static constexpr std::string_view kLetters = "kmgt";
  size_t which = unit.empty() ? kLetters.npos : kLetters.find(lower(unit[0]));
  if (which == kLetters.npos || unit.size() > 3) {
    return -1;
  }
  int shift = 10 * (static_cast<int>(which) + 1);
  char second = unit.size() > 1 ? lower(unit[1]) : '\0';
  char third = unit.size() > 2 ? lower(unit[2]) : '\0';
  bool known = (second == '\0') || (third == '\0' && (second == 'i' || second == 'b')) || (second == 'i' && third == 'b');
  return known ? shift : -1;
}

}  // namespace

std::string_view trim(std::string_view text) noexcept {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) {
    text.remove_prefix(1);
  }
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) {
    text.remove_suffix(1);
  }
  return text;
}

SizeError parse_size(std::string_view text, SizeSpec& out) noexcept {
  text = trim(text);
  if (text.empty()) {
    return SizeError::empty;
  }
  Number number = read_number(text);
  if (number.error != SizeError::none) {
    return number.error;
  }
  std::string_view unit = trim(text.substr(number.length));
  if (unit.empty()) {
    return number.length == text.size() && number.millionths == 0 ? SizeError::bare_number : SizeError::not_a_size;
  }
  if (unit == "%") {
    if (number.whole > 100 || (number.whole == 100 && number.millionths != 0)) {
      return SizeError::not_a_share;
    }
    out = {.bytes = 0, .share_ppm = static_cast<uint32_t>(number.whole) * 10'000 + number.millionths / 100, .is_share = true};
    return SizeError::none;
  }
  int shift = read_unit(unit);
  if (shift < 0 || (shift == 0 && number.millionths != 0)) {
    return SizeError::not_a_size;
  }
  unsigned __int128 bytes =
      (static_cast<unsigned __int128>(number.whole) << shift) + ((static_cast<unsigned __int128>(number.millionths) << shift) / 1'000'000);
  if (bytes > UINT64_MAX) {
    return SizeError::too_large;
  }
  out = {.bytes = static_cast<uint64_t>(bytes), .share_ppm = 0, .is_share = false};
  return SizeError::none;
}

SizeError parse_bytes(std::string_view text, uint64_t& out) noexcept {
  SizeSpec spec;
  SizeError error = parse_size(text, spec);
  if (error == SizeError::none && spec.is_share) {
    return SizeError::not_a_share;
  }
  if (error == SizeError::none) {
    out = spec.bytes;
  }
  return error;
}

void explain(SizeError error, std::string_view text, TextSink& out) noexcept {
  out.put('"').put(text).put('"');
  switch (error) {
    case SizeError::none:
      out.put(" is a size");
      break;
    case SizeError::empty:
      out.put(" is empty");
      break;
    case SizeError::bare_number:
      text = trim(text);
      out.put(" has no unit: ").put(text).put(" bytes is \"").put(text).put("B\", ");
      out.put(text).put(" GiB is \"").put(text).put("G\"");
      break;
    case SizeError::leading_zero:
      out.put(" begins with a zero");
      break;
    case SizeError::not_a_size:
      out.put(" is not a size");
      break;
    case SizeError::too_large:
      out.put(" is more than 64 bits hold");
      break;
    case SizeError::not_a_share:
      out.put(" is not a share that makes sense here");
      break;
  }
}

void put_size(TextSink& out, uint64_t bytes) noexcept {
  static constexpr std::string_view kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    out.decimal(bytes).put(" B");
    return;
  }
  unsigned shift = (63U - static_cast<unsigned>(__builtin_clzll(bytes))) / 10 * 10;
  uint64_t hundredths = static_cast<uint64_t>((static_cast<unsigned __int128>(bytes) * 100) >> shift);
  out.decimal(hundredths / 100).put('.').decimal(hundredths % 100, 2).put(' ').put(kUnits[shift / 10]);
}

}  // namespace xlog
