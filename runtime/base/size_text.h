// Sizes as people type them for docker, MPS and Kubernetes: K, M, G, T, with or without `i` or `B`, in any case, are
// powers of 1024 (`8G` = `8g` = `8Gi` = `8GB` = `8GiB`); a decimal fraction is allowed (`1.5G`); so are blanks around it.
// `%` is a share of a GPU's memory. A bare number has two likely meanings and is refused, as is everything else.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/text.h"

namespace xlog {

enum class SizeError : uint8_t {
  none,
  empty,
  bare_number,   // no unit: bytes, or the unit that was forgotten?
  leading_zero,  // 08G: octal to some readers
  not_a_size,
  too_large,   // does not fit in 64 bits
  not_a_share  // above 100 %, or a percentage where only bytes make sense
};

struct SizeSpec {
  uint64_t bytes = 0;
  uint32_t share_ppm = 0;  // millionths of the GPU's memory; used when `is_share`
  bool is_share = false;

  // Bytes on a GPU of `total` bytes.
  [[nodiscard]] uint64_t on(uint64_t total) const noexcept {
    return is_share ? static_cast<uint64_t>(static_cast<unsigned __int128>(total) * share_ppm / 1'000'000) : bytes;
  }
};

SizeError parse_size(std::string_view text, SizeSpec& out) noexcept;
// The same, where a percentage is not a size.
SizeError parse_bytes(std::string_view text, uint64_t& out) noexcept;

// What is wrong with `text`, as a sentence part: `"8" has no unit: 8 bytes is "8B", 8 GiB is "8G"`.
void explain(SizeError error, std::string_view text, TextSink& out) noexcept;

// `1536` -> `1.50 KiB`; `8589934592` -> `8.00 GiB`.
void put_size(TextSink& out, uint64_t bytes) noexcept;

std::string_view trim(std::string_view text) noexcept;

}  // namespace xlog
