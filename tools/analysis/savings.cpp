#include "tools/analysis/savings.h"

#include <algorithm>

namespace xlog::tools {

namespace {

// Of a block from the pool, of one that was kept, and of a free that need not wait (make bench-gpu, H100).
constexpr uint64_t kFromPool = 1'000;
constexpr uint64_t kKept = 400;
constexpr uint64_t kFree = 800;

// A cuMemFree on an idle H100: 31 us for small blocks, and 0.6 us more for each MiB.
uint64_t idle_free(uint64_t bytes) { return 31'000 + bytes / (1 << 20) * 600; }

uint64_t above(uint64_t spent, uint64_t cost) { return spent > cost ? spent - cost : 0; }

uint64_t& of(Saving& saving, Saver saver) { return saving.saved[static_cast<size_t>(saver)]; }

}  // namespace

const char* saver_name(Saver saver) {
  constexpr const char* kNames[kSavers] = {"async, wait", "async, ordered", "cache, wait", "cache, ordered"};
  return kNames[static_cast<size_t>(saver)];
}

void Saving::add(const Saving& other) {
  spent += other.spent;
  for (size_t i = 0; i < kSavers; ++i) {
    saved[i] += other.saved[i];
  }
}

Saver Saving::best() const { return static_cast<Saver>(std::max_element(saved, saved + kSavers) - saved); }

Saving SavingModel::allocation(uint64_t bytes, uint64_t elapsed_ns) {
  Saving saving{.spent = elapsed_ns};
  of(saving, Saver::async_wait) = of(saving, Saver::async_ordered) = above(elapsed_ns, kFromPool);
  auto kept = freed_.find(bytes);
  if (kept != freed_.end() && kept->second != 0) {
    --kept->second;
    of(saving, Saver::cache_wait) = of(saving, Saver::cache_ordered) = above(elapsed_ns, kKept);
  }
  return saving;
}

Saving SavingModel::free(uint64_t bytes, uint64_t elapsed_ns) {
  ++freed_[bytes];
  Saving saving{.spent = elapsed_ns};
  uint64_t waited = above(elapsed_ns, idle_free(bytes));
  of(saving, Saver::async_wait) = of(saving, Saver::cache_wait) = above(elapsed_ns, waited + kFree);
  of(saving, Saver::async_ordered) = of(saving, Saver::cache_ordered) = above(elapsed_ns, kFree);
  return saving;
}

}  // namespace xlog::tools
