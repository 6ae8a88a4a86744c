#include "tools/analysis/groups.h"

#include <algorithm>

namespace xlog::tools {

size_t Groups::slot_of(uint32_t number) const {
  size_t mask = slots_.size() - 1;
  size_t at = size_t{number} * 0x9E3779B1U & mask;
  while (slots_[at] != 0 && entries_[slots_[at] - 1].number != number) {
    at = (at + 1) & mask;
  }
  return at;
}

void Groups::grow() {
  constexpr size_t kFirst = 16;
  slots_.assign(slots_.empty() ? kFirst : slots_.size() * 2, 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    slots_[slot_of(entries_[i].number)] = static_cast<uint32_t>(i + 1);
  }
}

uint32_t Groups::look_up(uint32_t number) {
  if (entries_.size() * 2 >= slots_.size()) {
    grow();
  }
  size_t slot = slot_of(number);
  if (slots_[slot] == 0) {
    entries_.push_back({number, {}});
    slots_[slot] = static_cast<uint32_t>(entries_.size());
  }
  return last_ = slots_[slot] - 1;
}

void Groups::sort() {
  std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.number < b.number; });
  std::fill(slots_.begin(), slots_.end(), 0);
  for (size_t i = 0; i < entries_.size(); ++i) {
    slots_[slot_of(entries_[i].number)] = static_cast<uint32_t>(i + 1);
  }
}

std::vector<Holder> largest(const Groups& groups, uint64_t Group::*bytes, uint64_t Group::*blocks, size_t count) {
  std::vector<Holder> all;
  for (const auto& [number, group] : groups.entries()) {
    if (group.*blocks != 0) {
      all.push_back({number, group.*bytes, group.*blocks});
    }
  }
  auto larger = [](const Holder& a, const Holder& b) { return a.bytes != b.bytes ? a.bytes > b.bytes : a.place < b.place; };
  size_t n = std::min(count, all.size());
  std::partial_sort(all.begin(), all.begin() + static_cast<long>(n), all.end(), larger);
  all.resize(n);
  return all;
}

}  // namespace xlog::tools
