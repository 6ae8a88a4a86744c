// Texts of any bytes: as a field of NAME.stacks.csv, and for people.
#pragma once

#include <string>
#include <string_view>

namespace xlog::tools {

// A field of a line of CSV: quoted where needed; control characters, bytes that are not UTF-8 and backslashes as \xNN.
std::string whole_field(std::string_view text);
// What whole_field made the field from, its quotes taken off.
std::string from_field(std::string_view field);

// What may be shown on a terminal: control characters and bytes that are not UTF-8 as \xNN. At most `limit` bytes of it, cut
// between characters and ended by "...".
std::string printable(std::string_view text, size_t limit = std::string::npos);

}  // namespace xlog::tools
