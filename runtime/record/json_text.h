// JSON in a buffer of fixed size.
#pragma once

#include <string_view>

#include "runtime/base/text.h"

namespace xlog {

// A JSON string; bytes that are not UTF-8 become U+FFFD.
void put_json_string(TextSink& out, std::string_view text) noexcept;

}  // namespace xlog
