#include "tools/command/messages.h"

#include <iostream>

#include "runtime/base/text.h"

namespace xlog::tools {

std::string plain_text(std::string_view text) {
  std::string out(text.size(), '\0');
  TextSink sink(out.data(), out.size());
  put_plain(sink, text);
  out.resize(sink.size());
  return out;
}

void complain(std::string_view text) { std::cerr << "xlog: " + plain_text(text) + '\n' << std::flush; }

}  // namespace xlog::tools
