// What the driver takes for a block: 512 B steps up to 1 MiB, 2 MiB steps above (measured, facts on the H100); within a pool
// 512 B steps.
#pragma once

#include <cstdint>
#include <string_view>

namespace xlog::tools {

inline uint64_t taken_by(std::string_view kind, uint64_t bytes) {
  constexpr uint64_t kSmall = 512;
  constexpr uint64_t kChunk = 2 << 20;
  bool exact = kind == "vmm" || kind == "graph" || kind == "host" || kind == "import" || kind == "rmm";
  bool pooled = kind == "async" || kind == "pool";
  uint64_t step = exact ? 1 : pooled || bytes <= kChunk / 2 ? kSmall : kChunk;
  return bytes > UINT64_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

// The block stands at a device address; an array's, a handle's and a graph's number is none.
inline bool has_address(std::string_view kind) {
  return kind == "plain" || kind == "pitch" || kind == "async" || kind == "pool" || kind == "managed" || kind == "rmm";
}

}  // namespace xlog::tools
