// Threads that parse stretches of logs before they are asked for. A reader offers stretches and takes them in its own
// order; whoever has to wait parses one himself, so all cores are at work.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "tools/log/row_batch.h"

namespace xlog {

struct ReadJob {
  const RowFormat* format = nullptr;
  std::string_view text;
  size_t rest = 0;  // bytes behind it that may be read
  RowBatch batch;
  bool done = true;  // under the pool's lock
};

class ReadAhead {
 public:
  // No thread where the machine has one core only: then whoever waits does all.
  explicit ReadAhead(unsigned threads = std::thread::hardware_concurrency() - 1);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  // `job` stays the caller's, and must not be touched before finish().
  void offer(ReadJob& job);
  void finish(ReadJob& job);

 private:
  void work();
  void run_one(std::unique_lock<std::mutex>& lock);

  std::mutex mutex_;
  std::condition_variable offered_;
  std::condition_variable finished_;
  std::deque<ReadJob*> queue_;
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace xlog
