// The small types of the contract: which stream, which tag, which block, which use. Specification, section 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace xlog {

// An index into one StreamPool. 0 is the device's default stream in every pool; the others come from
// StreamPool::acquire, which writes the pool's own number into the upper bits, so that an id of another pool does not
// resolve.
struct StreamId {
  uint32_t value = 0;

  static constexpr uint32_t kIndexBits = 12;
  [[nodiscard]] constexpr uint32_t index() const noexcept { return value & ((1U << kIndexBits) - 1); }
  [[nodiscard]] constexpr uint32_t pool() const noexcept { return value >> kIndexBits; }
  friend constexpr bool operator==(StreamId, StreamId) noexcept = default;
};
inline constexpr StreamId kDefaultStream{};

// A name for an allocation, for logs. Copyable; its text lives for ever: a literal, which the compiler checks, or
// interned.
class AllocTag {
 public:
  constexpr AllocTag() noexcept = default;  // untagged
  template <size_t N>
  consteval AllocTag(const char (&literal)[N]) noexcept : text_(literal), size_(N - 1) {}  // NOLINT(google-explicit-constructor)

  // A tag with this text, made at run time: one copy a distinct text, kept for the life of the process. At most 120
  // bytes are kept. Untagged when there is no memory or more than 65536 texts. Thread-safe.
  static AllocTag intern(std::string_view text) noexcept;

  [[nodiscard]] constexpr std::string_view text() const noexcept { return {text_, size_}; }
  [[nodiscard]] constexpr bool is_untagged() const noexcept { return text() == "untagged"; }
  friend constexpr bool operator==(AllocTag a, AllocTag b) noexcept { return a.text() == b.text(); }

 private:
  constexpr AllocTag(const char* text, uint32_t size) noexcept : text_(text), size_(size) {}
  const char* text_ = "untagged";
  uint32_t size_ = 8;
};
inline constexpr AllocTag kUntagged{};

// Process-wide number of a block, from 1 and never twice: tells two blocks at one address apart.
struct Generation {
  uint64_t value = 0;

  static Generation next() noexcept { return reserve(1); }
  // The first of `count` numbers that are the caller's: for a resource that must not share a cache line with every other.
  static Generation reserve(uint64_t count) noexcept;
  friend constexpr auto operator<=>(Generation, Generation) noexcept = default;
};

enum class Access : uint8_t { read = 1, write = 2, read_write = 3 };
constexpr bool reads(Access access) noexcept { return (static_cast<uint8_t>(access) & 1) != 0; }
constexpr bool writes(Access access) noexcept { return (static_cast<uint8_t>(access) & 2) != 0; }
constexpr Access merged(Access a, Access b) noexcept { return static_cast<Access>(static_cast<uint8_t>(a) | static_cast<uint8_t>(b)); }

// Which block is meant: a copy of what tells it apart, without ownership. It may outlive the block; the generation
// tells.
struct BlockId {
  uint64_t ptr = 0;
  Generation generation;
  StreamId alloc_stream;
  int device_ordinal = -1;
  friend constexpr bool operator==(const BlockId&, const BlockId&) noexcept = default;
};

enum class BlockState : uint8_t {
  live,
  retired,      // given back; the free is not known to be done
  quarantined,  // given back and held by a guard
  freed,
};

}  // namespace xlog
