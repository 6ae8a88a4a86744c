// Messages of protocol buffers, written: https://protobuf.dev/programming-guides/encoding/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace xlog::tools {

class ProtoMessage {
 public:
  // A field of type (u)int64 or bool. 0 is what a reader takes for a field that is not there.
  void number(unsigned field, uint64_t value) {
    if (value != 0) {
      tag(field, kVarint);
      varint(value);
    }
  }
  // A string, bytes, or a message in the message. Written also where it is empty: a place in a repeated field counts.
  void text(unsigned field, std::string_view value) {
    tag(field, kLength);
    varint(value.size());
    out_ += value;
  }
  // A repeated field of numbers.
  void packed(unsigned field, const std::vector<uint64_t>& values) {
    ProtoMessage all;
    for (uint64_t each : values) {
      all.varint(each);
    }
    text(field, all.bytes());
  }
  [[nodiscard]] const std::string& bytes() const { return out_; }

 private:
  static constexpr unsigned kVarint = 0;
  static constexpr unsigned kLength = 2;
  void tag(unsigned field, unsigned type) { varint(uint64_t{field} << 3 | type); }
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) {
      out_ += static_cast<char>(value | 0x80);
    }
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

}  // namespace xlog::tools
