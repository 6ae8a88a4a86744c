#include "runtime/resource/block.h"

namespace xlog {

std::string_view kind_name(Kind kind) noexcept {
  switch (kind) {
    case Kind::plain:
      return "plain";
    case Kind::pitch:
      return "pitch";
    case Kind::async:
      return "async";
    case Kind::pool:
      return "pool";
    case Kind::managed:
      return "managed";
    case Kind::array:
      return "array";
    case Kind::vmm:
      return "vmm";
    case Kind::graph:
      return "graph";
    case Kind::host:
      return "host";
    case Kind::import:
      return "import";
    case Kind::foreign:
      return "foreign";
  }
  return "";
}

size_t plain_taken(size_t bytes) noexcept {
  constexpr size_t kSmall = 512;
  constexpr size_t kChunk = 2 << 20;
  size_t step = bytes <= kChunk / 2 ? kSmall : kChunk;
  size_t rounded = (bytes + step - 1) / step * step;
  return rounded < bytes ? SIZE_MAX : rounded;
}

size_t taken_by(Kind kind, size_t bytes) noexcept {
  bool exact = kind == Kind::vmm || kind == Kind::graph || is_outside(kind);
  return exact ? bytes : plain_taken(bytes);
}

size_t least_pitched(size_t width_bytes, size_t height) noexcept {
  size_t bytes = 0;
  return __builtin_mul_overflow(width_bytes, height, &bytes) ? SIZE_MAX : bytes;
}

}  // namespace xlog
