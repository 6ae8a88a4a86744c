// C++ symbols as people write them, within a limit on time and size.
#pragma once

#include <string>

namespace xlog::tools {

inline constexpr size_t kLongestSymbol = 4096;           // a longer one is kept as it is
inline constexpr size_t kLongestName = 64 << 10;         // of what a symbol stands for
inline constexpr long kDemangleNanoseconds = 2'000'000;  // of processor time, for one symbol

// The name that `symbol` stands for. A symbol that is no C++ name, is too long, stands for too long a name or takes too
// much time is returned as it is: a few dozen characters can stand for terabytes, and can take years.
std::string demangle(const char* symbol);

}  // namespace xlog::tools
