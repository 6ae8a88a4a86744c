// A moment of a log, as people write it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace xlog::tools {

// `12345` ns since the epoch as in the column `time`; `1.5s`, `20ms`, `300us`, `7ns` after the first row. Nothing when it
// cannot be read.
std::optional<uint64_t> parse_moment(const std::string& text, uint64_t first_time);

}  // namespace xlog::tools
