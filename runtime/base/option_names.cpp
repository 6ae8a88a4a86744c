// Names of variables that are nearly right.
#include "runtime/base/options.h"

namespace xlog {

namespace {

// Of the tests and of the simulated driver.
constexpr std::string_view kTests[] = {"XLOG_SIM_",   "XLOG_STACK_", "XLOG_TEST_",    "XLOG_BUILD",   "XLOG_KILLS",
                                       "XLOG_STORMS", "XLOG_GOLDEN", "XLOG_CHROMIUM", "XLOG_PYTHONS", "XLOG_SAMPLES_"};
// `xlog run` sets it, so that a log says which run it belongs to.
constexpr std::string_view kRunMark = "XLOG_RUN";
constexpr std::string_view kLimits[] = {"XLOG_BUDGET", "XLOG_BUDGET_COUNT", "XLOG_BUDGET_CONTEXT", "XLOG_HOST_BUDGET"};
// In a name that is no option, these say that it was meant to limit something.
constexpr std::string_view kLimitWords[] = {"BUDG", "BUGD", "LIMIT", "QUOTA"};

constexpr size_t kLongest = 32;

char upper(char c) noexcept { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; }

}  // namespace

size_t edit_distance(std::string_view a, std::string_view b) noexcept {
  if (a.size() > kLongest || b.size() > kLongest) {
    return SIZE_MAX;
  }
  size_t rows[3][kLongest + 1] = {};
  for (size_t j = 0; j <= b.size(); ++j) {
    rows[0][j] = j;
  }
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t* now = rows[i % 3];
    const size_t* before = rows[(i + 2) % 3];
    const size_t* earlier = rows[(i + 1) % 3];
    now[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t best = before[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      best = before[j] + 1 < best ? before[j] + 1 : best;
      best = now[j - 1] + 1 < best ? now[j - 1] + 1 : best;
      bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      now[j] = swapped && earlier[j - 2] + 1 < best ? earlier[j - 2] + 1 : best;
    }
  }
  return rows[a.size() % 3][b.size()];
}

NameKind kind_of_name(std::string_view name, std::string_view& nearest) noexcept {
  nearest = {};
  char text[2 * kLongest];
  size_t length = name.size() < sizeof text ? name.size() : sizeof text;
  for (size_t i = 0; i < length; ++i) {
    text[i] = upper(name[i]);
  }
  std::string_view meant(text, length);
  for (std::string_view test : kTests) {
    if (name.starts_with(test)) {
      return NameKind::not_ours;
    }
  }
  if (name == kRunMark) {
    return NameKind::not_ours;
  }
  size_t least = 3;
  for (const OptionRow& row : kOptions) {
    if (row.name == name) {
      return NameKind::option;
    }
    size_t distance = edit_distance(meant, row.name);
    if (distance < least) {
      least = distance;
      nearest = row.name;
    }
  }
  for (std::string_view limit : kLimits) {
    if (nearest == limit) {
      return NameKind::like_limit;
    }
  }
  if (!meant.starts_with("XLOG_")) {
    return nearest.empty() ? NameKind::not_ours : NameKind::unknown;
  }
  for (std::string_view word : kLimitWords) {
    if (meant.find(word) != meant.npos) {
      nearest = nearest.empty() ? kLimits[0] : nearest;
      return NameKind::like_limit;
    }
  }
  return NameKind::unknown;
}

}  // namespace xlog
