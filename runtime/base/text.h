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
    unsigned n = 0;
    do {
      digits[n++] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    for (unsigned i = n; i < min_digits; ++i) {
      put('0');
    }
    while (n != 0) {
      put(digits[--n]);
    }
    return *this;
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

}  // namespace xlog
