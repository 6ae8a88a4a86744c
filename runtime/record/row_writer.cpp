#include "runtime/record/row_writer.h"

namespace xlog {

namespace {

constexpr bool is_control(unsigned char c) noexcept { return c < 0x20 || c == 0x7f; }

// A field that can be written as it is: the common case, decided in one pass.
bool is_bare(std::string_view text) noexcept {
  for (char c : text) {
    auto u = static_cast<unsigned char>(c);
    if (is_control(u) || u >= 0x80 || c == '"' || c == ',') {
      return false;
    }
  }
  return true;
}

void put_number(TextSink& out, uint64_t value) noexcept {
  if (value != kNone) {
    out.decimal(value);
  }
  out.put(',');
}

void put_hex(TextSink& out, uint64_t value) noexcept {
  if (value != kNone) {
    out.put("0x").hex(value);
  }
  out.put(',');
}

}  // namespace

size_t utf8_length(std::string_view text, size_t i) noexcept {
  auto byte = [&](size_t at) { return static_cast<unsigned char>(text[at]); };
  unsigned char lead = byte(i);
  size_t length = lead < 0x80 ? 1 : lead >= 0xc2 && lead < 0xe0 ? 2 : (lead & 0xf0) == 0xe0 ? 3 : lead >= 0xf0 && lead < 0xf5 ? 4 : 0;
  if (length == 0 || i + length > text.size()) {
    return 0;
  }
  for (size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xc0) != 0x80) {
      return 0;
    }
  }
  bool overlong = (lead == 0xe0 && byte(i + 1) < 0xa0) || (lead == 0xf0 && byte(i + 1) < 0x90);
  bool surrogate = lead == 0xed && byte(i + 1) >= 0xa0;
  bool too_high = lead == 0xf4 && byte(i + 1) >= 0x90;
  return overlong || surrogate || too_high ? 0 : length;
}

void put_field(TextSink& out, std::string_view text, size_t limit) noexcept {
  if (text.size() <= limit && is_bare(text)) {
    out.put(text);
    return;
  }
  out.put('"');
  size_t begin = out.size();
  size_t i = 0;
  while (i < text.size()) {
    size_t length = utf8_length(text, i);
    constexpr size_t kEscaped = 4;
    bool fits = i + (length > 1 ? length : 1) <= limit && out.size() - begin + kEscaped <= 2 * limit;
    if (!fits) {
      break;
    }
    auto c = static_cast<unsigned char>(text[i]);
    if (length == 0 || is_control(c)) {
      out.put("\\x").hex(c, 2);
      ++i;
    } else {
      if (c == '"') {
        out.put('"');
      }
      out.put(text.substr(i, length));
      i += length;
    }
  }
  if (i < text.size()) {
    out.put("\xe2\x80\xa6");
  }
  out.put('"');
}

void put_whole_field(TextSink& out, std::string_view text) noexcept {
  if (is_bare(text) && text.find('\\') == text.npos) {
    out.put(text);
    return;
  }
  out.put('"');
  for (size_t i = 0; i < text.size();) {
    size_t length = utf8_length(text, i);
    auto c = static_cast<unsigned char>(text[i]);
    if (length == 0 || is_control(c) || c == '\\') {
      out.put("\\x").hex(c, 2);
      ++i;
      continue;
    }
    if (c == '"') {
      out.put('"');
    }
    out.put(text.substr(i, length));
    i += length;
  }
  out.put('"');
}

void put_row_head(TextSink& out, const Event& e) noexcept {
  out.decimal(e.thread).put(',').decimal(e.time).put(',').put(e.action).put(',');
  put_hex(out, e.ptr);
  put_number(out, e.bytes);
  put_hex(out, e.stream);
  put_number(out, e.device);
  put_field(out, e.tag);
  out.put(',');
  put_field(out, e.query_id);
  out.put(',');
}

void put_row_tail(TextSink& out, const Event& e, unsigned min_elapsed_digits, uint32_t* elapsed_at) noexcept {
  out.put(',');
  put_number(out, e.generation);
  out.put(e.kind).put(',').put(e.api).put(',').put(e.result).put(',');
  put_field(out, e.message);
  out.put(',');
  put_number(out, e.live_bytes);
  if (elapsed_at != nullptr) {
    *elapsed_at = static_cast<uint32_t>(out.size());
  }
  if (e.elapsed_ns != kNone) {
    out.decimal(e.elapsed_ns, min_elapsed_digits);
  }
  out.put(',');
  put_number(out, e.stack_id);
  put_field(out, e.thread_name);
  out.put('\n');
}

void put_header(TextSink& out) noexcept {
  for (size_t i = 0; i < kColumnCount; ++i) {
    out.put(kColumns[i]).put(i + 1 < kColumnCount ? ',' : '\n');
  }
}

}  // namespace xlog
