// What the backends keep for each context of the program: a private non-blocking stream, events, the frees that are not
// done. Made at the first use of a context, dropped when it ends; the handles are the context's and end with it.
// Thread-safe; all zero is empty.
#pragma once

#include <atomic>

#include "runtime/resource/event_pool.h"
#include "runtime/resource/free_queue.h"

namespace xlog {

struct ContextLane {
  std::atomic<CUcontext> context;
  std::atomic<uint32_t> users;
  CUstream stream;  // nothing on it ever waits for the program; nullptr when the context is gone, or it was not needed
  EventPool events;
  FreeQueue frees;
};

class ContextLanes {
 public:
  // The lane of a context for as long as this lives; false when there is none.
  class Use {
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

   private:
    ContextLane* lane_;
  };

  Use find(CUcontext context) noexcept;
  // The same, made when it is not there; the context is current, the thread in the relaxed capture mode. None for a
  // refused context, or for more than kLanes at once.
  Use open(const DriverApi& driver, CUcontext context, bool with_stream) noexcept;
  // The context has ended: no new user finds the lane, those inside are waited for, forget(lane) is called.
  template <class Forget>
  void close(CUcontext context, Forget forget) noexcept {
    ContextLane* lane = take(context);
    if (lane != nullptr) {
      forget(*lane);
      put(lane);
    }
  }
  // Contexts that get no lane: an event over a green context does not cover what may use its memory.
  void refuse(CUcontext context) noexcept;

  template <class Act>
  void each(Act act) noexcept {
    for (auto& each : lanes_) {
      ContextLane* lane = each.load(std::memory_order_acquire);
      Use use = lane != nullptr ? find(lane->context.load(std::memory_order_acquire)) : Use(nullptr);
      if (use) {
        act(*use);
      }
    }
  }

 private:
  static constexpr size_t kLanes = 32;
  static constexpr size_t kRefused = 64;

  bool is_refused(CUcontext context) noexcept;
  ContextLane* free_lane() noexcept;
  ContextLane* take(CUcontext context) noexcept;
  void put(ContextLane* lane) noexcept;

  Lock lock_;
  std::atomic<ContextLane*> lanes_[kLanes];  // mapped when first needed, then kept for the next context
  std::atomic<size_t> refusals_;
  CUcontext refused_[kRefused];
};

}  // namespace xlog
