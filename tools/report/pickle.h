// Python's pickle, protocol 2, written: https://peps.python.org/pep-0307/. PyTorch's viewer reads protocols 2 to 4.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>

namespace xlog::tools {

// Values are written one behind the other; a dictionary's are key, value, key, value.
class Pickle {
 public:
  explicit Pickle(std::ostream& out) : out_(out) { out_ << "\x80\x02"; }

  // What a value is called, once it was kept, so that it can stand in other places of the data without being written again.
  using Memo = uint32_t;

  void begin_dict() { out_ << "}("; }
  void end_dict() { out_ << 'u'; }
  void begin_list() { out_ << "]("; }
  // Between elements of a long list, every thousand or so, as Python does it: a reader takes what is between two of these at once,
  // and PyTorch's viewer has room for some ten thousand.
  void list_goes_on() { out_ << "e("; }
  void end_list() { out_ << 'e'; }
  void number(uint64_t value) {
    if (value < 1U << 16) {
      bool is_byte = value < 1U << 8;
      out_ << (is_byte ? 'K' : 'M');
      little_endian(value, is_byte ? 1 : 2);
    } else if (value < 1U << 31) {
      out_ << 'J';
      little_endian(value, 4);
    } else {  // signed: a ninth byte where the highest bit is set
      bool is_high = value >> 63 != 0;
      out_ << '\x8a' << (is_high ? '\x09' : '\x08');
      little_endian(value, 8);
      out_ << (is_high ? std::string_view("\0", 1) : std::string_view());
    }
  }
  void flag(bool value) { out_ << (value ? '\x88' : '\x89'); }
  // Must be UTF-8.
  void text(std::string_view value) {
    out_ << 'X';
    little_endian(value.size(), 4);
    out_ << value;
  }
  // The pair of two numbers that follows this.
  void end_pair() { out_ << '\x86'; }
  // The value that was written last.
  Memo keep() {
    put_memo('q', 'r', kept_);
    return kept_++;
  }
  void again(Memo memo) { put_memo('h', 'j', memo); }
  void end() { out_ << '.'; }

 private:
  void put_memo(char of_a_byte, char of_four, Memo memo) {
    bool is_byte = memo < 1U << 8;
    out_ << (is_byte ? of_a_byte : of_four);
    little_endian(memo, is_byte ? 1 : 4);
  }
  void little_endian(uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      out_.put(static_cast<char>(value >> (8 * i)));
    }
  }

  std::ostream& out_;
  Memo kept_ = 0;
};

}  // namespace xlog::tools
