#include "tools/log/read_ahead.h"

namespace xlog {

ReadAhead::ReadAhead(unsigned threads) {
  constexpr unsigned kMost = 16;
  for (unsigned i = 0; i < threads && i < kMost; ++i) {
    threads_.emplace_back([this] { work(); });
  }
}

ReadAhead::~ReadAhead() {
  {
    std::lock_guard guard(mutex_);
    stop_ = true;
  }
  offered_.notify_all();
  for (std::thread& each : threads_) {
    each.join();
  }
}

void ReadAhead::offer(ReadJob& job) {
  {
    std::lock_guard guard(mutex_);
    job.done = false;
    queue_.push_back(&job);
  }
  offered_.notify_one();
}

void ReadAhead::finish(ReadJob& job) {
  std::unique_lock lock(mutex_);
  while (!job.done) {
    if (queue_.empty()) {
      finished_.wait(lock);
    } else {
      run_one(lock);
    }
  }
}

void ReadAhead::run_one(std::unique_lock<std::mutex>& lock) {
  ReadJob* job = queue_.front();
  queue_.pop_front();
  lock.unlock();
  job->batch.parse(*job->format, job->text, job->rest);
  lock.lock();
  job->done = true;
  finished_.notify_all();
}

void ReadAhead::work() {
  std::unique_lock lock(mutex_);
  while (!stop_) {
    if (queue_.empty()) {
      offered_.wait(lock);
    } else {
      run_one(lock);
    }
  }
}

}  // namespace xlog
