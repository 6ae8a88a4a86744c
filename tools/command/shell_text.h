// Text for a shell: the one function that every line goes through that a shell will read.
#pragma once

#include <string>
#include <string_view>

namespace xlog::tools {

// One word of a POSIX shell (and of bash and zsh) whose value is exactly `text`, whatever it holds: in single quotes unless it
// has nothing but letters, digits and `_-./=:,+@%`. A zero byte cannot stand in a shell's word.
std::string shell_word(std::string_view text);

// The same for fish, where a backslash and a quote are special within quotes.
std::string fish_word(std::string_view text);

}  // namespace xlog::tools
