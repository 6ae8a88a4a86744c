// What the backends keep for each context of the program: a private non-blocking stream, events, the frees that are not done. Made at
// the first use of a context and dropped when it ends; the driver ends the handles with the context.
//
// The driver gives the handle of a context that has ended to another one. So each lane has the number of its incarnation, which is
// never used twice; whatever outlives a call (a kept block, for example) is known by that number and not by the handle.
// Thread-safe; all zero is empty. Any number of contexts: looking one up costs a walk over those of the same hash, of 64.
#pragma once

#include <atomic>

#include "runtime/resource/event_pool.h"
#include "runtime/resource/free_queue.h"

namespace xlog {

struct ContextLane {
  std::atomic<CUcontext> context;     // nullptr: the context has ended, or is about to; or the lane waits for another one
  CUcontext ending;                   // the context that is about to end
  bool ended;                         // it has: its handles, and the memory that is its own, are the driver's
  std::atomic<uint64_t> incarnation;  // of that context, from 1
  std::atomic<uint32_t> users;
  bool refused;     // gets neither a stream nor events: an event over a green context does not cover what may use its memory
  CUstream stream;  // nothing on it ever waits for the program; nullptr when the context is gone, or it was not needed
  EventPool events;
  FreeQueue frees;
  ContextLane* next;  // of the same hash
};

class ContextLanes {
 public:
  // The lane of a context for as long as this lives; false when there is none.
  class [[nodiscard]] Use {
   public:
    explicit Use(ContextLane* lane) noexcept : lane_(lane) {}
    Use(Use&& other) noexcept : lane_(other.lane_) { other.lane_ = nullptr; }
    ~Use() {
      if (lane_ != nullptr) {
        lane_->users.fetch_sub(1, std::memory_order_acq_rel);
      }
    }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    Use& operator=(Use&&) = delete;
    explicit operator bool() const noexcept { return lane_ != nullptr; }
    ContextLane* operator->() const noexcept { return lane_; }
    ContextLane& operator*() const noexcept { return *lane_; }
    [[nodiscard]] uint64_t incarnation() const noexcept { return lane_->incarnation.load(std::memory_order_relaxed); }

   private:
    ContextLane* lane_;
  };

  Use find(CUcontext context) noexcept;
  // The same, made when it is not there; the context is current, the thread in the relaxed capture mode. None for a refused context,
  // or without host memory.
  Use open(const DriverApi& driver, CUcontext context, bool with_stream) noexcept;
  // The driver is about to end the context, and its handles with it: no new user finds the lane, and those inside are waited for.
  // act(lane) is called. Then one of the other two, while no other context can be given the handle.
  template <class Act>
  void suspend(CUcontext context, Act act) noexcept {
    LockGuard guard(lock_);
    each_of(context, [&](ContextLane& lane) {
      if (lane.context.load(std::memory_order_relaxed) == context) {
        lane.ending = context;
        lane.context.store(nullptr, std::memory_order_seq_cst);
        wait_for_users(lane);
        act(lane);
      }
    });
  }
  // The driver refused to end it.
  template <class Act>
  void resume(CUcontext context, Act act) noexcept {
    LockGuard guard(lock_);
    each_of(context, [&](ContextLane& lane) {
      if (lane.ending == context) {
        act(lane);
        lane.ending = nullptr;
        lane.context.store(context, std::memory_order_seq_cst);
      }
    });
  }
  // It has ended; the lane then waits for another context.
  template <class Act>
  void close(CUcontext context, Act act) noexcept {
    suspend(context, [](ContextLane&) {});
    LockGuard guard(lock_);
    each_of(context, [&](ContextLane& lane) {
      if (lane.ending == context) {
        lane.ended = true;
        lane.stream = nullptr;
        lane.refused = false;
        lane.events.forget();
        act(lane);
        lane.ending = nullptr;
      }
    });
  }
  // This context gets no lane until it ends.
  void refuse(CUcontext context) noexcept;
  // A context with this handle has something here: when the driver has just made that context, an earlier one ended unseen.
  [[nodiscard]] bool knows(CUcontext context) noexcept;

  template <class Act>
  void each(Act act) noexcept {
    for (auto& head : heads_) {
      for (ContextLane* lane = head.load(std::memory_order_acquire); lane != nullptr; lane = lane->next) {
        Use use = find(lane->context.load(std::memory_order_acquire));
        if (use) {
          act(*use);
        }
      }
    }
  }

 private:
  static constexpr size_t kHeads = 64;

  std::atomic<ContextLane*>& head(CUcontext context) noexcept;
  ContextLane* search(CUcontext context) noexcept;
  // Under the lock.
  ContextLane* claim(CUcontext context) noexcept;
  static void wait_for_users(const ContextLane& lane) noexcept;
  template <class Act>
  void each_of(CUcontext context, Act act) noexcept {
    for (ContextLane* lane = context != nullptr ? head(context).load(std::memory_order_acquire) : nullptr; lane != nullptr;
         lane = lane->next) {
      act(*lane);
    }
  }

  Lock lock_;
  std::atomic<uint64_t> incarnations_;
  std::atomic<ContextLane*> heads_[kHeads];  // lanes are mapped when first needed, then kept for the next context of the same hash
};

}  // namespace xlog
