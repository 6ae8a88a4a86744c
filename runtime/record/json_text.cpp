#include "runtime/record/json_text.h"

#include "runtime/record/row_writer.h"

namespace xlog {

void put_json_string(TextSink& out, std::string_view text) noexcept {
  out.put('"');
  for (size_t i = 0; i < text.size();) {
    size_t length = utf8_length(text, i);
    auto c = static_cast<unsigned char>(text[i]);
    if (length == 0) {
      out.put("\xef\xbf\xbd");
      ++i;
      continue;
    }
    if (c < 0x20) {
      out.put("\\u00").hex(c, 2);
    } else {
      if (c == '"' || c == '\\') {
        out.put('\\');
      }
      out.put(text.substr(i, length));
    }
    i += length;
  }
  out.put('"');
}

}  // namespace xlog
