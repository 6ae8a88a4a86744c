// The options in force: one struct made from options.def, and a parser that is a pure function of a lookup. A value that
// cannot be read is an error, never a guess.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/base/size_text.h"
#include "runtime/base/text.h"

namespace xlog {

inline constexpr size_t kMaxDevices = 16;

enum class Backend : uint8_t { native, direct, async, cache };
enum class AsyncFree : uint8_t { wait, ordered };
enum class BudgetCount : uint8_t { bytes, taken };
enum class GuardAction : uint8_t { report, abort };

// Which blocks are fenced, and how.
struct FenceSpec {
  uint32_t one_in = 0;  // of so many blocks one; 0: off
  uint32_t align = 512;
  bool before = false;  // the fence that is met at once stands before the block
  uint64_t least = 0;   // sizes of blocks
  uint64_t most = UINT64_MAX;
};
struct GuardSpec {
  uint32_t zone = 0;  // bytes behind each block; 0: off
  FenceSpec fence;
};
struct GuardCheck {
  bool at_exit = false;
  uint32_t launches = 0;  // after so many launches of kernels; 0: not
};
struct PoisonSpec {
  bool on_alloc = false;
  bool on_free = false;
};

// One part of XLOG_BUDGET: the limit of one GPU, or of every GPU that has no part of its own.
struct BudgetPart {
  enum class Key : uint8_t { every, ordinal, uuid };
  Key key = Key::every;
  uint32_t ordinal = 0;  // the program's own, after CUDA_VISIBLE_DEVICES
  char uuid[44] = {};    // `GPU-...` or `MIG-...`, whole or a prefix, lower case
  SizeSpec size;

  [[nodiscard]] bool names(uint32_t ordinal, std::string_view uuid) const noexcept;
};

// No machine has an ordinal that is larger.
inline constexpr uint32_t kMostOrdinals = 10000;

// Which parts of a budget name a GPU that is there.
class BudgetMatches;

struct BudgetSpec {
  static constexpr size_t kMostParts = 256;
  BudgetPart parts[kMostParts];
  uint32_t count = 0;

  // Marks the parts that name this GPU. After all GPUs: a part that names none, which would limit nothing; or nullptr.
  void match(uint32_t ordinal, std::string_view uuid, BudgetMatches& matches) const noexcept;
  [[nodiscard]] const BudgetPart* unmatched(const BudgetMatches& matches) const noexcept;

  // Limit for a GPU in bytes; UINT64_MAX when none is set. A UUID counts more than an ordinal, an ordinal more than
  // the part for every GPU.
  [[nodiscard]] uint64_t limit(uint32_t ordinal, std::string_view uuid, uint64_t total) const noexcept;
};

class BudgetMatches {
 public:
  void add(size_t part) noexcept { found_[part] = true; }
  [[nodiscard]] bool has(size_t part) const noexcept { return found_[part]; }

 private:
  bool found_[BudgetSpec::kMostParts] = {};
};

struct SizeOrAuto {
  SizeSpec size;
  bool is_auto = false;
};

template <size_t N>
struct FixedText {
  char data[N] = {};
  uint32_t size = 0;
  [[nodiscard]] std::string_view view() const noexcept { return {data, size}; }
};

using PathText = FixedText<1000>;
using ShortText = FixedText<120>;
using Bytes = uint64_t;
using Depth = uint32_t;
using Flag = bool;

struct Options {
#define XLOG_OPTION(type, name, field, fallback, strict, form, help) type field{};
#include "runtime/base/options.def"
#undef XLOG_OPTION

  // Something of the stack is switched on: otherwise every call is the driver's, untouched.
  [[nodiscard]] bool any() const noexcept {
    return backend != Backend::native || budget.count != 0 || host_budget != UINT64_MAX || log.size != 0 || has_summary() || guards();
  }
  [[nodiscard]] bool has_summary() const noexcept { return summary.size != 0 && summary.view() != "off"; }
  [[nodiscard]] bool guards() const noexcept {
    return guard.zone != 0 || guard.fence.one_in != 0 || poison.on_alloc || poison.on_free || quarantine != 0;
  }
};

struct OptionRow {
  std::string_view name;
  std::string_view fallback;
  bool strict;
  std::string_view form;
  std::string_view help;
};

inline constexpr OptionRow kOptions[] = {
#define XLOG_OPTION(type, name, field, fallback, strict, form, help) {name, fallback, strict, form, help},
#include "runtime/base/options.def"
#undef XLOG_OPTION
};

// Text of a variable, or nullptr.
using OptionLookup = const char* (*)(const char* name);
// Receives one line for each value that could not be read.
using OptionComplaint = void (*)(std::string_view line, bool strict);

// Fills every field: from the lookup, else with its default. False when a strict option could not be read.
bool parse_options(OptionLookup lookup, OptionComplaint complain, Options& out) noexcept;

// How many insertions, deletions, replacements and swaps of neighbours lead from one text to the other. SIZE_MAX for texts of
// more than 32 bytes.
size_t edit_distance(std::string_view a, std::string_view b) noexcept;

// What a variable's name is to this library.
enum class NameKind : uint8_t {
  option,
  not_ours,    // of the tests, or of something else
  unknown,     // begins with XLOG_, and is no option
  like_limit,  // meant to be a limit, as far as one can see
};
// `nearest`: the option that it may be meant for, or empty.
NameKind kind_of_name(std::string_view name, std::string_view& nearest) noexcept;

}  // namespace xlog
