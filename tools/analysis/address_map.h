// Which addresses have ever held a block, to tell holes from addresses that never were the program's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace xlog::tools {

// Free ranges between or beside blocks, of addresses that have held a block before.
struct Holes {
  bool known = false;
  uint64_t count = 0;
  uint64_t bytes = 0;
  uint64_t largest = 0;
};

// Blocks at steps of 512 bytes, as the driver places them.
class AddressMap {
 public:
  AddressMap() = default;
  AddressMap(AddressMap&&) = default;
  AddressMap& operator=(AddressMap&&) = default;
  void add(uint64_t ptr, uint64_t bytes);
  // `live`: ptr and bytes of what is live; put in order here.
  [[nodiscard]] Holes holes(std::vector<std::pair<uint64_t, uint64_t>>& live) const;

 private:
  // A program whose addresses are more scattered than this is not followed further.
  static constexpr size_t kMostRanges = 1 << 20;
  std::map<uint64_t, uint64_t> ranges_;  // begin -> end, apart
  // The range that was met last: most blocks lie in it, or make it longer.
  uint64_t begin_ = 0;
  uint64_t* end_ = nullptr;  // in `ranges_`
  uint64_t next_ = 0;        // where the one behind it begins
  bool given_up_ = false;
};

}  // namespace xlog::tools
