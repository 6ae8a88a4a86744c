// For tables of megabytes whose places are met at random: in small pages, finding the page takes longer than reading it.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace xlog::tools {

template <class Value>
struct HugePages {
  using value_type = Value;
  HugePages() = default;
  template <class Other>
  HugePages(const HugePages<Other>& /*other*/) {}  // NOLINT(google-explicit-constructor): what an allocator has

  Value* allocate(size_t count) {
    size_t bytes = count * sizeof(Value);
    if (bytes < kPage) {
      return static_cast<Value*>(::operator new(bytes));
    }
    void* made = ::operator new(bytes, std::align_val_t(kPage));
    ::madvise(made, bytes, MADV_HUGEPAGE);  // where the machine has none to give: as before
    return static_cast<Value*>(made);
  }
  void deallocate(Value* made, size_t count) {
    if (count * sizeof(Value) < kPage) {
      ::operator delete(made);
    } else {
      ::operator delete(made, std::align_val_t(kPage));
    }
  }
  friend bool operator==(const HugePages& /*a*/, const HugePages& /*b*/) { return true; }

 private:
  static constexpr size_t kPage = 2 << 20;
};

}  // namespace xlog::tools
