// What the calling thread says it is doing: ranges that it is in, outermost first, and the query that it works for. They
// become the columns `tag` and `query_id`. Nothing is allocated but a page of our own for a thread that is in a range.
//
// Names are copied, at most kLongestName bytes of each; ranges beyond kMostRanges are counted and have no name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace xlog {

inline constexpr size_t kMostRanges = 32;
inline constexpr size_t kLongestName = 96;

// A range within a domain: NVTX counts and ends them apart. Our own functions use domain 0.
using TagDomain = uint64_t;

// How many ranges of the domain the thread was in before, or -1 when there is no memory for it.
int push_tag(TagDomain domain, std::string_view name, std::string_view query_id = {}) noexcept;
// Ends the innermost range of the domain. How many it is in now, or -1 when it was in none.
int pop_tag(TagDomain domain) noexcept;

// A range that another thread may end. It names the work of the thread that started it. 0 when there are too many.
uint64_t start_tag(std::string_view name, std::string_view query_id = {}) noexcept;
void end_tag(uint64_t id) noexcept;

// For this thread until it is changed, unless a range says otherwise. Empty: none.
void set_query_id(std::string_view id) noexcept;

struct ThreadTags {
  std::string_view tag;  // `base/outer/inner`
  std::string_view query_id;
};
// Good until the thread's next call of any of these. Empty outside ranges, whatever `base` is.
ThreadTags thread_tags(std::string_view base) noexcept;

}  // namespace xlog
