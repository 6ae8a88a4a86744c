// Sums over blocks that have something in common, on one GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace xlog::tools {

// What blocks may have in common.
enum class By : uint8_t { stack, thread, stream, kind, tag, query, process };
inline constexpr size_t kDimensions = 7;

// `at_peak` is what the group held when its GPU was at its highest: taken down lazily, at the first change after each new
// peak.
struct Group {
  uint64_t allocations = 0;
  uint64_t bytes = 0;  // allocated, all told
  uint64_t live = 0;
  uint64_t live_blocks = 0;
  uint64_t left = 0;  // never freed, of processes that have ended; part of `live` once all is read
  uint64_t left_blocks = 0;
  uint64_t at_peak = 0;
  uint64_t blocks_at_peak = 0;
  uint64_t peak_epoch = 0;
  uint64_t freed_at_exit = 0;
  uint64_t freed_at_exit_blocks = 0;
  uint64_t failures = 0;
  uint64_t temporary = 0;    // freed before the thread that made it made another
  uint64_t short_lived = 0;  // freed within kShortLife
};
// There is something to tell of it: it may have had blocks at the peak that were made while the log was off, or none but
// refused requests.
inline bool has_figures(const Group& group) { return group.allocations + group.live + group.at_peak + group.failures != 0; }
inline constexpr uint64_t kShortLife = 1'000'000;  // ns

// The groups of one dimension that a GPU has, by number: a run of thousands of ranks has many numbers, and each GPU few of them.
class Groups {
 public:
  struct Entry {
    uint32_t number = 0;
    Group group;
  };
  // Place in entries() of the group `number`, until sort(); makes it where there is none.
  uint32_t place(uint32_t number) { return last_ < entries_.size() && entries_[last_].number == number ? last_ : look_up(number); }
  Group& at_place(uint32_t place) { return entries_[place].group; }
  Group& at(uint32_t number) { return at_place(place(number)); }
  [[nodiscard]] uint32_t number(uint32_t place) const { return entries_[place].number; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  // In the order of their numbers, for reading.
  void sort();
  template <class Visit>
  void each(Visit visit) {
    for (Entry& entry : entries_) {
      visit(entry.group);
    }
  }

 private:
  uint32_t look_up(uint32_t number);
  void grow();
  [[nodiscard]] size_t slot_of(uint32_t number) const;

  std::vector<Entry> entries_;
  std::vector<uint32_t> slots_;  // open addressing: place in `entries_` and 1; 0: empty
  uint32_t last_ = 0;
};

// A group's figures at its GPU's peak are those from before its first change after the peak.
inline Group& touch(Group& group, uint64_t peak_epoch) {
  if (group.peak_epoch != peak_epoch) {
    group.at_peak = group.live;
    group.blocks_at_peak = group.live_blocks;
    group.peak_epoch = peak_epoch;
  }
  return group;
}

struct Holder {
  uint32_t place = 0;  // of the stack, in Report::places
  uint64_t bytes = 0;
  uint64_t blocks = 0;
};

// The largest `count` by `bytes`, descending; groups without blocks are left out.
std::vector<Holder> largest(const Groups& groups, uint64_t Group::*bytes, uint64_t Group::*blocks, size_t count);

}  // namespace xlog::tools
