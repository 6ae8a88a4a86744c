// What the program `journal` writes and its judge reads: for each thread the calls that have returned, in order.
#pragma once

#include <atomic>
#include <cstdint>

inline constexpr int kJournalThreads = 8;
inline constexpr uint32_t kJournalCalls = 20'000;

struct JournalThread {
  std::atomic<uint32_t> tid;     // 0 until its first call has returned
  std::atomic<uint32_t> calls;   // that have returned
  uint64_t call[kJournalCalls];  // the pointer, with bit 0 set for a free
};

struct Journal {
  JournalThread threads[kJournalThreads];
};
