// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace xlog::tools {

std::string size_text(uint64_t bytes);                  // 1.50 GiB
std::string count_text(uint64_t n);                     // 1,234,567
std::string time_text(uint64_t ns);                     // 12.3 ms
std::string share_text(uint64_t part, uint64_t whole);  // 12.3 %
std::string hex_text(uint64_t value);                   // 0x7f00
std::string plural(uint64_t n, const char* word);       // 1 block, 2 blocks

}  // namespace xlog::tools
