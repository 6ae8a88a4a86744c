// An estimate, from the times in a log, of what a backend would have saved of the program's cuMemAlloc and cuMemFree. The
// log does not say how much of a free was waiting for kernels: what is longer than a free takes on an idle GPU is taken
// for that. Costs are those of an H100 (README, "Measured").
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>

namespace xlog::tools {

enum class Saver { async_wait, async_ordered, cache_wait, cache_ordered };
inline constexpr size_t kSavers = 4;
// As XLOG_BACKEND and XLOG_ASYNC_FREE say it: "async, wait".
const char* saver_name(Saver saver);

// Nanoseconds spent in plain calls, and what of that each backend would have saved.
struct Saving {
  uint64_t spent = 0;
  uint64_t saved[kSavers] = {};
  void add(const Saving& other);
  [[nodiscard]] uint64_t by(Saver saver) const { return saved[static_cast<size_t>(saver)]; }
  [[nodiscard]] Saver best() const;
};

// The sizes that one process has freed on one GPU: a cache gives out only what it was given.
class SavingModel {
 public:
  Saving allocation(uint64_t bytes, uint64_t elapsed_ns);
  Saving free(uint64_t bytes, uint64_t elapsed_ns);

 private:
  std::unordered_map<uint64_t, uint64_t> freed_;
};

}  // namespace xlog::tools
