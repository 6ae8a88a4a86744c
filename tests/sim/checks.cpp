// What no driver reports and every program relies on: memory is used between its allocation and its free, in the order
// of streams. An operation remembers which block it touches when it is enqueued, and is judged when it runs.
#include <cstdio>
#include <cstdlib>

#include "tests/sim/driver.h"

namespace sim {

namespace {
bool judging = true;
}  // namespace

uint64_t begin_life(uint64_t made, Stream* stream) {
  Driver& driver = Driver::get();
  uint64_t serial = driver.next_serial++;
  driver.lives[serial] = {made, stream, false};
  if (driver.lives.size() > 100'000) {  // long runs: what nothing in a queue can touch any more
    for (auto it = driver.lives.begin(); it != driver.lives.end();) {
      it = it->second.over && driver.unfinished.empty() ? driver.lives.erase(it) : std::next(it);
    }
  }
  return serial;
}

void end_life(uint64_t serial) {
  auto life = Driver::get().lives.find(serial);
  if (life != Driver::get().lives.end()) {
    life->second.over = true;
  }
}

Use use_of(uint64_t ptr, Stream* stream) {
  Block* block = find_block(ptr);
  return {block != nullptr ? block->serial : 0, stream};
}

void Use::check() const {
  Driver& driver = Driver::get();
  auto life = driver.lives.find(serial);
  if (serial == 0 || life == driver.lives.end()) {
    return;
  }
  bool early = life->second.stream != nullptr && life->second.stream != stream && driver.unfinished.count(life->second.made) != 0;
  if (judging && (early || life->second.over)) {
    std::fprintf(stderr, "simulated driver: memory is used %s\n",
                 early ? "on another stream before its allocation was done" : "after its free was done");
    std::abort();
  }
}

}  // namespace sim

// For tests that show what goes wrong without order: uses are not judged.
SIM_EXPORT void xlog_sim_judge_uses(bool judge) {
  std::lock_guard guard(sim::Driver::get().lock);
  sim::judging = judge;
}
