#include "tools/analysis/groups.h"

#include <algorithm>

namespace xlog::tools {

std::vector<Holder> largest(const Groups& groups, uint64_t Group::*bytes, uint64_t Group::*blocks, size_t count) {
  std::vector<Holder> all;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].*blocks != 0) {
      all.push_back({static_cast<uint32_t>(i), groups[i].*bytes, groups[i].*blocks});
    }
  }
  auto larger = [](const Holder& a, const Holder& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.place < b.place; };
  size_t n = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<long>(n), all.end(), larger);
  all.resize(n);
  return all;
}

}  // namespace xlog::tools
