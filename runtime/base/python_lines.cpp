#include "runtime/base/python_lines.h"

namespace xlog {

namespace {

int signed_step(uint8_t byte) noexcept { return byte < 128 ? byte : byte - 256; }

// A table is the program's memory and may say anything: sums wrap.
int sum(int a, int b) noexcept { return static_cast<int>(static_cast<unsigned>(a) + static_cast<unsigned>(b)); }

// Pairs of steps: in the instructions, then in the lines.
int line_of_3_9(std::span<const uint8_t> table, int first, int at) noexcept {
  int line = first;
  int address = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    address = sum(address, table[i]);
    if (address > at) {
      break;
    }
    line = sum(line, signed_step(table[i + 1]));
  }
  return line;
}

// Pairs: so many bytes of instructions, and the step to their line. -128: they have none.
int line_of_3_10(std::span<const uint8_t> table, int first, int at) noexcept {
  constexpr int kNoLine = -128;
  int line = first;
  int end = 0;
  for (size_t i = 0; i + 1 < table.size(); i += 2) {
    int step = signed_step(table[i + 1]);
    line = sum(line, step != kNoLine ? step : 0);
    end = sum(end, table[i]);
    if (at < end) {
      return step != kNoLine ? line : 0;
    }
  }
  return 0;
}

class Locations {
 public:
  explicit Locations(std::span<const uint8_t> table) noexcept : table_(table) {}

  int line_of(int first, int at) noexcept {
    int line = first;
    int end = 0;
    while (at_ < table_.size()) {
      uint8_t begin = next();
      unsigned form = begin >> 3 & 15;
      end = sum(end, (static_cast<int>(begin & 7) + 1) * 2);
      line = sum(line, step(form));
      if (at < end) {
        return form == kNone ? 0 : line;
      }
      while (at_ < table_.size() && (table_[at_] & 0x80) == 0) {
        ++at_;  // the columns
      }
    }
    return 0;
  }

 private:
  static constexpr unsigned kOneLine = 10;
  static constexpr unsigned kNoColumns = 13;
  static constexpr unsigned kLong = 14;
  static constexpr unsigned kNone = 15;

  uint8_t next() noexcept { return at_ < table_.size() ? table_[at_++] : 0; }

  int step(unsigned form) noexcept {
    if (form == kNoColumns || form == kLong) {
      unsigned value = next_number();
      return (value & 1) != 0 ? -static_cast<int>(value >> 1) : static_cast<int>(value >> 1);
    }
    return form >= kOneLine && form < kNoColumns ? static_cast<int>(form - kOneLine) : 0;
  }

  unsigned next_number() noexcept {
    unsigned value = 0;
    for (unsigned shift = 0; shift < 32; shift += 6) {
      uint8_t part = next();
      value |= static_cast<unsigned>(part & 63) << shift;
      if ((part & 64) == 0) {
        break;
      }
    }
    return value;
  }

  std::span<const uint8_t> table_;
  size_t at_ = 0;
};

}  // namespace

uint32_t python_line(unsigned minor, std::span<const uint8_t> table, int first, int at) noexcept {
  int line = minor < 10    ? line_of_3_9(table, first, at)
             : minor == 10 ? line_of_3_10(table, first, at)
                           : Locations(table).line_of(first, at);
  return line > 0 ? static_cast<uint32_t>(line) : 0;
}

}  // namespace xlog
