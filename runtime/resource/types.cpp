#include "runtime/resource/types.h"

#include <atomic>
#include <cstring>

#include "runtime/base/lock.h"
#include "runtime/base/memory_map.h"

namespace xlog {

namespace {

constexpr size_t kMostText = 120;
constexpr size_t kMostTags = 65536;
constexpr size_t kSlots = kMostTags * 2;
constexpr size_t kPage = 65536;

// Interned texts: open addressing, filled only. What is interned stays where it is.
struct Interned {
  const char* text;
  uint32_t size;
};
struct Tags {
  Lock lock;
  Interned* slots;
  size_t count;
  char* page;
  size_t page_used;
};
constinit Tags tags{};

uint64_t hash_text(std::string_view text) noexcept {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  }
  return hash ^ (hash >> 32);
}

const char* keep(std::string_view text) noexcept {
  if (tags.page == nullptr || tags.page_used + text.size() > kPage) {
    auto* page = static_cast<char*>(map_kept(kPage));
    if (page == nullptr) {
      return nullptr;
    }
    tags.page = page;
    tags.page_used = 0;
  }
  char* at = tags.page + tags.page_used;
  std::memcpy(at, text.data(), text.size());
  tags.page_used += text.size();
  return at;
}

}  // namespace

AllocTag AllocTag::intern(std::string_view text) noexcept {
  text = text.substr(0, kMostText);
  LockGuard guard(tags.lock);
  if (tags.slots == nullptr) {
    tags.slots = static_cast<Interned*>(map_kept(kSlots * sizeof(Interned)));
  }
  if (tags.slots == nullptr || text.empty()) {
    return {};
  }
  size_t at = hash_text(text) % kSlots;
  while (tags.slots[at].text != nullptr) {
    if (std::string_view(tags.slots[at].text, tags.slots[at].size) == text) {
      return {tags.slots[at].text, tags.slots[at].size};
    }
    at = (at + 1) % kSlots;
  }
  const char* kept = tags.count < kMostTags ? keep(text) : nullptr;
  if (kept == nullptr) {
    return {};
  }
  tags.slots[at] = {kept, static_cast<uint32_t>(text.size())};
  ++tags.count;
  return {kept, static_cast<uint32_t>(text.size())};
}

Generation Generation::reserve(uint64_t count) noexcept {
  static constinit std::atomic<uint64_t> last{0};
  return {last.fetch_add(count, std::memory_order_relaxed) + 1};
}

}  // namespace xlog
