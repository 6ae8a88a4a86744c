// The lives of the program's contexts. The driver gives the handle of a context that has ended to the next one, keeps the handle of a
// primary context through releases and resets, and does not say whether a release was the last. So every call that begins or ends a
// context holds `lifetime`: those that begin one share it, those that may end one own it. While it is owned no other context can
// come to a handle, and what was known under the handle can be cleaned up without meeting its next owner.
//
// Thread-safe where it says nothing else; all zero is a process without contexts. Never calls the driver.
#pragma once

#include <cstdint>

#include "runtime/base/shared_lock.h"
#include "runtime/resource/block.h"
#include "runtime/resource/growing_list.h"

namespace xlog {

class Contexts {
 public:
  SharedLock lifetime;

  // The primary context of a device was retained; a green context retains it too. True: nobody held it before.
  bool retained(int device, CUcontext primary) noexcept;
  // It was released. The program may have retained it where we did not see it, so the count can be too low.
  void released(int device) noexcept;
  // A release now may end it.
  [[nodiscard]] bool may_end(int device) noexcept;
  // nullptr: the program has not retained it.
  [[nodiscard]] CUcontext primary(int device) noexcept;
  [[nodiscard]] bool is_primary(CUcontext context) noexcept;

  // cuCtxAttach counts how often a context was attached, cuCtxDetach counts down and ends it at nought.
  void attached(CUcontext context) noexcept;
  // True: this detach ends the context.
  [[nodiscard]] bool detach_ends(CUcontext context) noexcept;
  void detached(CUcontext context) noexcept;

  // A green context is part of its device's primary context, which holds its memory.
  void green_made(CUgreenCtx green, int device) noexcept;
  void green_named(CUgreenCtx green, CUcontext context) noexcept;
  // The device of a green context, or -1; `context`: the handle that cuCtxFromGreenCtx gave for it, or nullptr.
  [[nodiscard]] int find_green(CUgreenCtx green, CUcontext& context) noexcept;
  void green_ended(CUgreenCtx green) noexcept;

  // The context has ended. Call with `lifetime` owned.
  void ended(CUcontext context) noexcept;

 private:
  struct Primary {
    int device;
    uint32_t holds;
    CUcontext context;
  };
  struct Attached {
    CUcontext context;
    uint32_t times;  // beyond the first
  };
  struct Green {
    CUgreenCtx green;
    int device;
    CUcontext context;
  };
  // The lock is held.
  Primary* find(int device) noexcept;
  Attached* find(CUcontext context) noexcept;
  Green* find(CUgreenCtx green) noexcept;

  Lock lock_;
  GrowingList<Primary> primaries_;
  GrowingList<Attached> attached_;
  GrowingList<Green> greens_;
};

}  // namespace xlog
