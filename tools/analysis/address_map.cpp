#include "tools/analysis/address_map.h"

#include <algorithm>

namespace xlog::tools {

namespace {

constexpr uint64_t kStep = 512;

uint64_t end_of(uint64_t ptr, uint64_t bytes) {
  uint64_t end = ptr + bytes;
  return end < ptr || end > UINT64_MAX - kStep ? UINT64_MAX : (end + kStep - 1) / kStep * kStep;
}

}  // namespace

void AddressMap::add(uint64_t ptr, uint64_t bytes) {
  uint64_t begin = ptr;
  uint64_t end = end_of(ptr, bytes);
  if (given_up_) {
    return;
  }
  if (end_ != nullptr && begin >= begin_ && begin <= *end_ && end < next_) {
    *end_ = std::max(*end_, end);
    return;
  }
  auto next = ranges_.upper_bound(begin);
  if (next != ranges_.begin() && std::prev(next)->second >= begin) {
    --next;
    begin = next->first;
  }
  while (next != ranges_.end() && next->first <= end) {
    end = std::max(end, next->second);
    next = ranges_.erase(next);
  }
  auto range = ranges_.emplace_hint(next, begin, end);
  begin_ = begin;
  end_ = &range->second;
  next_ = next != ranges_.end() ? next->first : UINT64_MAX;
  if (ranges_.size() > kMostRanges) {
    given_up_ = true;
    end_ = nullptr;
    ranges_.clear();
  }
}

Holes AddressMap::holes(std::vector<std::pair<uint64_t, uint64_t>>& live) const {
  Holes out;
  out.known = !given_up_ && !ranges_.empty();
  std::sort(live.begin(), live.end());
  size_t at = 0;
  for (const auto& [begin, end] : ranges_) {
    uint64_t free_from = begin;
    auto hole = [&](uint64_t until) {
      if (until > free_from) {
        ++out.count;
        out.bytes += until - free_from;
        out.largest = std::max(out.largest, until - free_from);
      }
    };
    for (; at < live.size() && live[at].first < end; ++at) {
      hole(live[at].first);
      free_from = std::max(free_from, end_of(live[at].first, live[at].second));
    }
    hole(end);
  }
  return out;
}

}  // namespace xlog::tools
