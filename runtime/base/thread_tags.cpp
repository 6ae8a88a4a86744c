#include "runtime/base/thread_tags.h"

#include <atomic>

#include "runtime/base/lock.h"
#include "runtime/base/memory_map.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"

namespace xlog {

namespace {

constexpr size_t kLongestQuery = 40;

template <size_t N>
struct Name {
  char data[N];
  uint8_t size;
  void set(std::string_view text) noexcept {
    size = static_cast<uint8_t>(text.size() < N ? text.size() : N);
    if (size != 0) {
      std::memcpy(data, text.data(), size);
    }
  }
  [[nodiscard]] std::string_view view() const noexcept { return {data, size}; }
};

struct Range {
  TagDomain domain;
  uint64_t started;  // its number, for one that any thread may end; else 0
  Name<kLongestName> name;
  Name<kLongestQuery> query_id;
};

}  // namespace

// One thread's, in a page of its own that a fork child keeps a copy of.
struct TagStack {
  uint32_t depth;
  uint32_t beyond;   // ranges without a name
  uint32_t started;  // of `depth`, those that any thread may end
  uint32_t path_size;
  bool is_path_old;
  Name<kLongestQuery> query_id;
  Range ranges[kMostRanges];
  char path[256];
  TagStack* next_spare;
};

namespace {

// Pages of threads that are in no range. A fork child may find the lock taken for ever: it maps pages then.
Lock spare_lock{};
TagStack* spare = nullptr;

TagStack* take_page() noexcept {
  TagStack* found = nullptr;
  if (spare_lock.try_lock()) {
    found = spare;
    spare = found != nullptr ? found->next_spare : nullptr;
    spare_lock.unlock();
  }
  return found != nullptr ? found : static_cast<TagStack*>(map_kept(sizeof(TagStack)));
}

TagStack* own_page() noexcept {
  if (this_thread.tags == nullptr) {
    this_thread.tags = take_page();
  }
  return this_thread.tags;
}

void give_back_if_unused() noexcept {
  TagStack* own = this_thread.tags;
  if (own->depth + own->beyond + own->query_id.size != 0) {
    return;
  }
  this_thread.tags = nullptr;
  if (spare_lock.try_lock()) {
    own->next_spare = spare;
    spare = own;
    spare_lock.unlock();
  } else {
    unmap_state(own, sizeof *own);
  }
}

// Numbers of ranges that any thread may end: a slot and the count of its uses.
constexpr size_t kStarted = 256;
std::atomic<uint64_t> started[kStarted];  // odd: in use
std::atomic<uint32_t> next_started{0};

uint64_t take_number() noexcept {
  for (size_t i = 0; i < kStarted; ++i) {
    uint64_t slot = next_started.fetch_add(1, std::memory_order_relaxed) % kStarted;
    uint64_t uses = started[slot].load(std::memory_order_relaxed);
    if (uses % 2 == 0 && started[slot].compare_exchange_strong(uses, uses + 1, std::memory_order_acq_rel)) {
      return (uses + 1) << 8 | slot;
    }
  }
  return 0;
}

bool is_over(const Range& range) noexcept {
  return range.started != 0 && started[range.started % kStarted].load(std::memory_order_acquire) != range.started >> 8;
}

void erase(TagStack& own, uint32_t index) noexcept {
  own.started -= own.ranges[index].started != 0 ? 1 : 0;
  --own.depth;
  std::memmove(&own.ranges[index], &own.ranges[index + 1], (own.depth - index) * sizeof(Range));
  own.is_path_old = true;
}

void drop_what_is_over(TagStack& own) noexcept {
  for (uint32_t i = own.started != 0 ? own.depth : 0; i-- > 0;) {
    if (is_over(own.ranges[i])) {
      erase(own, i);
    }
  }
}

int ranges_of(const TagStack& own, TagDomain domain) noexcept {
  int count = 0;
  for (uint32_t i = 0; i < own.depth; ++i) {
    count += own.ranges[i].domain == domain && own.ranges[i].started == 0 ? 1 : 0;
  }
  return count;
}

bool add(TagStack& own, TagDomain domain, uint64_t number, std::string_view name, std::string_view query_id) noexcept {
  if (own.depth == kMostRanges) {
    return false;
  }
  Range& range = own.ranges[own.depth++];
  range.domain = domain;
  range.started = number;
  range.name.set(name);
  range.query_id.set(query_id);
  own.started += number != 0 ? 1 : 0;
  own.is_path_old = true;
  return true;
}

void write_path(TagStack& own, std::string_view base) noexcept {
  TextSink path(own.path, sizeof own.path);
  path.put(base);
  for (uint32_t i = 0; i < own.depth; ++i) {
    if (path.size() != 0) {
      path.put('/');
    }
    path.put(own.ranges[i].name.view());
  }
  own.path_size = static_cast<uint32_t>(path.size());
  own.is_path_old = false;
}

}  // namespace

int push_tag(TagDomain domain, std::string_view name, std::string_view query_id) noexcept {
  TagStack* own = own_page();
  if (own == nullptr) {
    return -1;
  }
  drop_what_is_over(*own);
  int before = ranges_of(*own, domain);
  if (!add(*own, domain, 0, name, query_id)) {
    before += static_cast<int>(own->beyond++);
  }
  return before;
}

int pop_tag(TagDomain domain) noexcept {
  TagStack* own = this_thread.tags;
  if (own == nullptr) {
    return -1;
  }
  if (own->beyond != 0) {
    --own->beyond;
    return ranges_of(*own, domain) + static_cast<int>(own->beyond);
  }
  for (uint32_t i = own->depth; i-- > 0;) {
    if (own->ranges[i].domain == domain && own->ranges[i].started == 0) {
      erase(*own, i);
      int left = ranges_of(*own, domain);
      give_back_if_unused();
      return left;
    }
  }
  return -1;
}

uint64_t start_tag(std::string_view name, std::string_view query_id) noexcept {
  TagStack* own = own_page();
  uint64_t number = own != nullptr ? take_number() : 0;
  if (number != 0) {
    drop_what_is_over(*own);
    add(*own, 0, number, name, query_id);
  }
  return number;
}

void end_tag(uint64_t id) noexcept {
  uint64_t uses = id >> 8;
  if (uses % 2 == 1) {
    started[id % kStarted].compare_exchange_strong(uses, uses + 1, std::memory_order_acq_rel);
  }
  if (this_thread.tags != nullptr) {
    drop_what_is_over(*this_thread.tags);
    give_back_if_unused();
  }
}

void set_query_id(std::string_view id) noexcept {
  TagStack* own = id.empty() ? this_thread.tags : own_page();
  if (own != nullptr) {
    own->query_id.set(id);
    give_back_if_unused();
  }
}

ThreadTags thread_tags(std::string_view base) noexcept {
  TagStack* own = this_thread.tags;
  if (own == nullptr) {
    return {};
  }
  drop_what_is_over(*own);
  ThreadTags out{.tag = {}, .query_id = own->query_id.view()};
  for (uint32_t i = own->depth; i-- > 0;) {
    if (own->ranges[i].query_id.size != 0) {
      out.query_id = own->ranges[i].query_id.view();
      break;
    }
  }
  if (own->depth != 0) {
    if (own->is_path_old) {
      write_path(*own, base);
    }
    out.tag = {own->path, own->path_size};
  }
  return out;
}

}  // namespace xlog
