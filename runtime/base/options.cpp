#include "runtime/base/options.h"

#include <utility>

namespace xlog {

namespace {

// What is wrong with a value; empty when nothing is.
using Reason = Text<400>;

bool is_blank(std::string_view text) noexcept { return trim(text).empty(); }

template <class Value, size_t N>
bool parse_word(std::string_view text, const std::string_view (&words)[N], Value& out) noexcept {
  text = trim(text);
  for (size_t i = 0; i < N; ++i) {
    if (text == words[i]) {
      out = static_cast<Value>(i);
      return true;
    }
  }
  return false;
}

constexpr std::string_view kBackends[] = {"native", "direct", "async", "cache"};
constexpr std::string_view kAsyncFrees[] = {"wait", "ordered"};
constexpr std::string_view kBudgetCounts[] = {"bytes", "taken"};
constexpr std::string_view kGuardActions[] = {"report", "abort"};

bool parse_value(std::string_view text, Backend& out, Reason&) noexcept { return parse_word(text, kBackends, out); }
bool parse_value(std::string_view text, AsyncFree& out, Reason&) noexcept { return parse_word(text, kAsyncFrees, out); }
bool parse_value(std::string_view text, BudgetCount& out, Reason&) noexcept { return parse_word(text, kBudgetCounts, out); }

bool parse_value(std::string_view text, GuardAction& out, Reason&) noexcept { return parse_word(text, kGuardActions, out); }

bool parse_value(std::string_view text, PoisonSpec& out, Reason&) noexcept {
  out = {};
  if (trim(text) == "off") {
    return true;
  }
  for (std::string_view rest = text;;) {
    size_t comma = rest.find(',');
    std::string_view word = trim(rest.substr(0, comma));
    if (word != "alloc" && word != "free") {
      return false;
    }
    (word == "alloc" ? out.on_alloc : out.on_free) = true;
    if (comma == rest.npos) {
      return true;
    }
    rest.remove_prefix(comma + 1);
  }
}

bool parse_value(std::string_view text, bool& out, Reason&) noexcept {
  text = trim(text);
  if (text == "0" || text == "1") {
    out = text == "1";
    return true;
  }
  return false;
}

bool parse_ordinal(std::string_view text, uint32_t below, uint32_t& out) noexcept {
  if (text.empty() || text.size() > 4) {
    return false;
  }
  uint32_t value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') {
      return false;
    }
    value = value * 10 + static_cast<uint32_t>(c - '0');
  }
  out = value;
  return value < below;
}

// One part of `fence:...`: 1/N, an alignment, `before`, or sizes MIN-MAX of which one may be left out.
bool parse_fence_part(std::string_view part, FenceSpec& out, Reason& reason) noexcept {
  if (part.starts_with("1/")) {
    return parse_ordinal(part.substr(2), 10000, out.one_in) && out.one_in != 0;
  }
  if (part == "before") {
    out.before = true;
    return true;
  }
  size_t dash = part.find('-');
  if (dash == part.npos) {
    return parse_ordinal(part, 513, out.align) && out.align >= 16 && (out.align & (out.align - 1)) == 0;
  }
  for (auto [text, bound] : {std::pair{part.substr(0, dash), &out.least}, std::pair{part.substr(dash + 1), &out.most}}) {
    SizeError error = text.empty() ? SizeError::none : parse_bytes(text, *bound);
    if (error != SizeError::none) {
      explain(error, text, reason);
      return false;
    }
  }
  return part.size() > 1 && out.least <= out.most;
}

bool parse_value(std::string_view text, GuardSpec& out, Reason& reason) noexcept {
  constexpr std::string_view kCanary = "canary:";
  constexpr std::string_view kFence = "fence:";
  text = trim(text);
  out = {};
  out.zone = text == "canary" ? 256 : 0;
  out.fence.one_in = text.substr(0, text.find(':')) == "fence" ? 1 : 0;
  if (text == "off" || text == "canary" || text == "fence") {
    return true;
  }
  if (!text.starts_with(kFence)) {
    return text.starts_with(kCanary) && parse_ordinal(text.substr(kCanary.size()), 4097, out.zone) && out.zone >= 16;
  }
  for (std::string_view rest = text.substr(kFence.size());;) {
    size_t colon = rest.find(':');
    if (!parse_fence_part(rest.substr(0, colon), out.fence, reason)) {
      return false;
    }
    if (colon == rest.npos) {
      return true;
    }
    rest.remove_prefix(colon + 1);
  }
}

bool parse_value(std::string_view text, GuardCheck& out, Reason&) noexcept {
  constexpr std::string_view kLaunch = "launch:";
  text = trim(text);
  out = {.at_exit = text != "free", .launches = text == "launch" ? 1U : 0U};
  if (text == "free" || text == "exit" || text == "launch") {
    return true;
  }
  return text.starts_with(kLaunch) && parse_ordinal(text.substr(kLaunch.size()), 10000, out.launches) && out.launches != 0;
}

bool parse_value(std::string_view text, Depth& out, Reason&) noexcept {
  text = trim(text);
  if (text == "off") {
    out = 0;
    return true;
  }
  return parse_ordinal(text, 129, out) && out != 0;
}

bool parse_value(std::string_view text, Bytes& out, Reason& reason) noexcept {
  if (is_blank(text)) {
    out = UINT64_MAX;
    return true;
  }
  SizeError error = parse_bytes(text, out);
  if (error != SizeError::none) {
    explain(error, text, reason);
  }
  return error == SizeError::none;
}

bool parse_value(std::string_view text, SizeSpec& out, Reason& reason) noexcept {
  SizeError error = parse_size(text, out);
  if (error != SizeError::none) {
    explain(error, trim(text), reason);
  }
  return error == SizeError::none;
}

bool parse_value(std::string_view text, SizeOrAuto& out, Reason& reason) noexcept {
  out.is_auto = trim(text) == "auto";
  return out.is_auto || parse_value(text, out.size, reason);
}

template <size_t N>
bool parse_value(std::string_view text, FixedText<N>& out, Reason&) noexcept {
  if (text.size() > N) {
    return false;
  }
  if (!text.empty()) {
    std::memcpy(out.data, text.data(), text.size());
  }
  out.size = static_cast<uint32_t>(text.size());
  return true;
}

bool is_uuid_key(std::string_view key) noexcept {
  std::string_view head = key.substr(0, key.size() < 4 ? key.size() : 4);
  return (head == "GPU-" || head == "MIG-") && key.size() > 4 && key.size() < sizeof(BudgetPart::uuid);
}

bool parse_key(std::string_view key, BudgetPart& part) noexcept {
  key = trim(key);
  if (is_uuid_key(key)) {
    part.key = BudgetPart::Key::uuid;
    for (size_t i = 0; i < key.size(); ++i) {
      bool hex_letter = i >= 4 && key[i] >= 'A' && key[i] <= 'F';
      part.uuid[i] = hex_letter ? static_cast<char>(key[i] - 'A' + 'a') : key[i];
    }
    return true;
  }
  part.key = BudgetPart::Key::ordinal;
  return parse_ordinal(key, kMostOrdinals, part.ordinal);
}

bool same_key(const BudgetPart& a, const BudgetPart& b) noexcept {
  return a.key == b.key && a.ordinal == b.ordinal && std::string_view(a.uuid) == std::string_view(b.uuid);
}

bool parse_part(std::string_view text, BudgetSpec& out, Reason& reason) noexcept {
  if (out.count == BudgetSpec::kMostParts) {
    reason.put("too many parts");
    return false;
  }
  BudgetPart& part = out.parts[out.count];
  part = BudgetPart{};
  size_t equals = text.find('=');
  std::string_view size = text;
  if (equals != text.npos) {
    size = text.substr(equals + 1);
    if (!parse_key(text.substr(0, equals), part)) {
      reason.put('"').put(trim(text.substr(0, equals))).put("\" is neither an ordinal nor GPU-uuid nor MIG-uuid");
      return false;
    }
  }
  SizeError error = parse_size(size, part.size);
  if (error != SizeError::none) {
    explain(error, trim(size), reason);
    return false;
  }
  for (uint32_t i = 0; i < out.count; ++i) {
    if (same_key(out.parts[i], part)) {
      reason.put("the same GPU is named twice");
      return false;
    }
  }
  ++out.count;
  return true;
}

bool parse_value(std::string_view text, BudgetSpec& out, Reason& reason) noexcept {
  out.count = 0;
  if (text.empty()) {
    return true;
  }
  for (std::string_view rest = text;;) {
    size_t comma = rest.find(',');
    if (!parse_part(rest.substr(0, comma), out, reason)) {
      return false;
    }
    if (comma == rest.npos) {
      return true;
    }
    rest.remove_prefix(comma + 1);
  }
}

template <class T>
bool parse_option(const OptionRow& row, OptionLookup lookup, OptionComplaint complain, T& field) noexcept {
  const char* found = lookup(row.name.data());
  std::string_view text = found != nullptr ? std::string_view(found) : row.fallback;
  Reason reason;
  // An empty limit is a forgotten one (XLOG_BUDGET=$UNSET), not the wish for none.
  bool forgotten = row.strict && found != nullptr && is_blank(text);
  if (forgotten) {
    reason.put("it is empty");
  } else if (parse_value(text, field, reason)) {
    return true;
  }
  Text<900> line;
  line.put(row.name).put("=");
  put_plain(line, text.substr(0, text.size() < 200 ? text.size() : 200)).put(": ");
  if (reason.size() != 0) {
    put_plain(line, reason.view()).put("; ");
  }
  line.put("give ").put(row.form);
  if (row.strict) {
    line.put("; no GPU work is started");
  } else {
    line.put("; ignored");
    Reason unused;
    parse_value(row.fallback, field, unused);
  }
  complain(line.view(), row.strict);
  return !row.strict;
}

}  // namespace

bool parse_options(OptionLookup lookup, OptionComplaint complain, Options& out) noexcept {
  bool good = true;
  size_t row = 0;
#define XLOG_OPTION(type, name, field, fallback, strict, form, help) \
  good = parse_option(kOptions[row++], lookup, complain, out.field) && good;
#include "runtime/base/options.def"
#undef XLOG_OPTION
  return good;
}

const BudgetPart* BudgetSpec::unmatched(const BudgetMatches& matches) const noexcept {
  for (uint32_t i = 0; i < count; ++i) {
    if (parts[i].key != BudgetPart::Key::every && !matches.has(i)) {
      return &parts[i];
    }
  }
  return nullptr;
}

void BudgetSpec::match(uint32_t ordinal, std::string_view uuid, BudgetMatches& matches) const noexcept {
  for (uint32_t i = 0; i < count; ++i) {
    if (parts[i].names(ordinal, uuid)) {
      matches.add(i);
    }
  }
}

// CUDA gives a MIG instance's UUID without saying that it is one.
bool BudgetPart::names(uint32_t given_ordinal, std::string_view given_uuid) const noexcept {
  constexpr size_t kPrefix = 4;  // GPU- or MIG-
  switch (key) {
    case Key::ordinal:
      return ordinal == given_ordinal;
    case Key::uuid:
      return given_uuid.size() > kPrefix && given_uuid.substr(kPrefix).starts_with(std::string_view(uuid).substr(kPrefix));
    default:
      return true;
  }
}

uint64_t BudgetSpec::limit(uint32_t ordinal, std::string_view uuid, uint64_t total) const noexcept {
  const BudgetPart* best = nullptr;
  for (uint32_t i = 0; i < count; ++i) {
    const BudgetPart& part = parts[i];
    bool fits = part.names(ordinal, uuid);
    if (fits && (best == nullptr || part.key > best->key)) {
      best = &part;
    }
  }
  return best == nullptr ? UINT64_MAX : best->size.on(total);
}

}  // namespace xlog
