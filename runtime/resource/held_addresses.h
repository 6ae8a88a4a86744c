// Pointers that the program has freed and the driver still takes for blocks: a second free of one is not the driver's to
// answer. Thread-safe; all zero is empty.
#pragma once

#include "runtime/resource/address_table.h"

namespace xlog {

class HeldAddresses {
 public:
  void add(CUdeviceptr ptr) noexcept {
    Address replaced{};
    addresses_.insert({.ptr = ptr}, replaced);
  }
  void remove(CUdeviceptr ptr) noexcept {
    Address found{};
    addresses_.take(ptr, found);
  }
  bool contains(CUdeviceptr ptr) noexcept {
    bool held = false;
    addresses_.visit(ptr, [&](Address* found) {
      held = found != nullptr;
      return false;
    });
    return held;
  }

 private:
  struct Address {
    uint64_t ptr;
  };
  AddressMap<Address> addresses_{};
};

}  // namespace xlog
