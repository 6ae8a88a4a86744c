// Text that comes from a log, a path, an argument or another process, made safe for the reader that it is written to. Each kind of
// reader has one function here, and everything that is written for it goes through that function.
#pragma once

#include <string>
#include <string_view>

namespace xlog::tools {

// For a terminal or a file that people read. Characters that would move the cursor, change colours or the order of the text are
// shown as \x1b or \u202e, and bytes that are not UTF-8 as \xff. A result is not changed by a second pass.
std::string terminal_text(std::string_view text);  // keeps line ends and tabs
std::string terminal_line(std::string_view text);  // one line: shows a line end as \n and a tab as \t

// GitHub's workflow command `::error title=TITLE::MESSAGE`, as one line. No text can end the command or begin another.
std::string github_error(std::string_view title, std::string_view message);

// JSON text, changed in the strings alone, to which it means the same: no character of it can act on a terminal.
std::string json_for_terminal(std::string_view json);
// JSON text between <script> and </script> of a page: nothing in it can end the element.
std::string json_for_script(std::string_view json);

}  // namespace xlog::tools
