// A list of plain values without an order, in pages of our own, of any length. Not thread-safe; all zero is empty. A fork child
// finds it as its owner finds itself: in memory that is wiped there it is empty.
#pragma once

#include <cstddef>
#include <cstring>

#include "runtime/base/memory_map.h"

namespace xlog {

template <class Value>
class GrowingList {
 public:
  // False when there is no host memory for one more.
  bool add(const Value& value) noexcept {
    if (count_ == capacity_ && !grow()) {
      return false;
    }
    values_[count_++] = value;
    return true;
  }
  // The last value takes the position of the one that goes.
  void remove_at(size_t i) noexcept { values_[i] = values_[--count_]; }
  [[nodiscard]] size_t size() const noexcept { return count_; }
  [[nodiscard]] Value& operator[](size_t i) noexcept { return values_[i]; }
  [[nodiscard]] const Value& operator[](size_t i) const noexcept { return values_[i]; }
  [[nodiscard]] Value* begin() noexcept { return values_; }
  [[nodiscard]] Value* end() noexcept { return values_ + count_; }

 private:
  bool grow() noexcept {
    size_t capacity = capacity_ == 0 ? kFirst : capacity_ * 2;
    auto* values = static_cast<Value*>(map_kept(capacity * sizeof(Value)));
    if (values == nullptr) {
      return false;
    }
    if (values_ != nullptr) {
      std::memcpy(static_cast<void*>(values), values_, count_ * sizeof(Value));
      unmap_state(values_, capacity_ * sizeof(Value));
    }
    values_ = values;
    capacity_ = capacity;
    return true;
  }

  static constexpr size_t kFirst = 4096 / sizeof(Value) != 0 ? 4096 / sizeof(Value) : 1;
  Value* values_ = nullptr;
  size_t count_ = 0;
  size_t capacity_ = 0;
};

}  // namespace xlog
