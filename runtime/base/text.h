// Text built in a buffer of fixed size: what the preloaded library uses instead of stdio and std::string, neither of
// which it may call inside another program's allocation. Not thread-safe; never allocates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace xlog {

// Appends to memory that the caller owns. What does not fit is dropped, and `full()` says so.
class TextSink {
 public:
  TextSink(char* data, size_t capacity) noexcept : data_(data), capacity_(capacity) {}

  TextSink& put(char c) noexcept {
    if (size_ < capacity_) {
      data_[size_++] = c;
    } else {
      full_ = true;
    }
    return *this;
  }

  TextSink& put(std::string_view text) noexcept {
    size_t room = capacity_ - size_;
    size_t n = text.size() <= room ? text.size() : room;
    if (n != 0) {
      std::memcpy(data_ + size_, text.data(), n);
      size_ += n;
    }
    if (n != text.size()) {
      full_ = true;
    }
    return *this;
  }

  TextSink& decimal(uint64_t value, unsigned min_digits = 1) noexcept {
    char digits[20];
    char* at = digits + sizeof digits;
    while (value >= 100) {  // two digits a division: a row has some seventy of them
      at -= 2;
      std::memcpy(at, kPairs + value % 100 * 2, 2);
      value /= 100;
    }
    if (value >= 10) {
      at -= 2;
      std::memcpy(at, kPairs + value * 2, 2);
    } else {
      *--at = static_cast<char>('0' + value);
    }
    auto n = static_cast<unsigned>(digits + sizeof digits - at);
    for (unsigned i = n; i < min_digits; ++i) {
      put('0');
    }
    return put(std::string_view(at, n));
  }

  TextSink& hex(uint64_t value, unsigned min_digits = 1) noexcept {
    char digits[16];
    unsigned n = 0;
    do {
      digits[n++] = "0123456789abcdef"[value & 15];
      value >>= 4;
    } while (value != 0);
    for (unsigned i = n; i < min_digits; ++i) {
      put('0');
    }
    while (n != 0) {
      put(digits[--n]);
    }
    return *this;
  }

  [[nodiscard]] std::string_view view() const noexcept { return {data_, size_}; }
  [[nodiscard]] char* data() noexcept { return data_; }
  [[nodiscard]] size_t size() const noexcept { return size_; }
  [[nodiscard]] bool full() const noexcept { return full_; }
  void clear() noexcept {
    size_ = 0;
    full_ = false;
  }
  // Cuts back to an earlier size.
  void rewind(size_t size) noexcept {
    size_ = size;
    full_ = false;
  }

 private:
  static constexpr const char* kPairs =
      "0001020304050607080910111213141516171819202122232425262728293031323334353637383940414243444546474849"
      "5051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899";

  char* data_;
  size_t capacity_;
  size_t size_ = 0;
  bool full_ = false;
};

template <size_t N>
class Text : public TextSink {
 public:
  Text() noexcept : TextSink(storage_, N) {}
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

 private:
  char storage_[N];
};

// Text that somebody else wrote, in a line of ours: its control characters (C0, DEL, and C1 as UTF-8) become '?', so that it can
// neither begin a line of its own nor steer a terminal.
inline TextSink& put_plain(TextSink& out, std::string_view text) noexcept {
  for (size_t i = 0; i < text.size(); ++i) {
    auto c = static_cast<unsigned char>(text[i]);
    auto next = static_cast<unsigned char>(i + 1 < text.size() ? text[i + 1] : '\0');
    bool is_c1 = c == 0xc2 && next >= 0x80 && next < 0xa0;
    i += is_c1 ? 1 : 0;
    out.put(is_c1 || c < 0x20 || c == 0x7f ? '?' : text[i]);
  }
  return out;
}

// As UTF-8.
inline void put_code_point(TextSink& out, uint32_t c) noexcept {
  auto put = [&out](uint32_t byte) { out.put(static_cast<char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6);
    put(0x80 | (c & 63));
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12);
    put(0x80 | (c >> 6 & 63));
    put(0x80 | (c & 63));
  } else {
    put(0xf0 | c >> 18);
    put(0x80 | (c >> 12 & 63));
    put(0x80 | (c >> 6 & 63));
    put(0x80 | (c & 63));
  }
}

}  // namespace xlog
