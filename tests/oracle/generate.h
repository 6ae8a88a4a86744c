// Logs as programs leave them, from a seed: processes after each other and at once, killed ones, forks, several GPUs, logs that
// lost rows, were switched, sampled, or are RMM's. What is in them is what real logs have, and no more.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace xlog::oracle {

enum class Sort : uint8_t {
  plain,
  one_after_another,
  pages,     // plain memory only: small blocks on pages of 2 MiB that they share, larger ones on their own
  lost,      // XLOG_LOG_MAX was reached
  switched,  // the log went off and came on
  sampled,   // XLOG_LOG_SAMPLE
  rmm,
};
constexpr int kSorts = 7;
constexpr Sort sort_of(uint64_t seed) { return static_cast<Sort>(seed % kSorts); }

// One run's logs, written to `folder`, which is there and empty.
void generate(uint64_t seed, const std::string& folder);

}  // namespace xlog::oracle
