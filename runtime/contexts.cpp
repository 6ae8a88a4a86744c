#include "runtime/contexts.h"

namespace xlog {

Contexts::Primary* Contexts::find(int device) noexcept {
  for (Primary& each : primaries_) {
    if (each.device == device) {
      return &each;
    }
  }
  return nullptr;
}

Contexts::Attached* Contexts::find(CUcontext context) noexcept {
  for (Attached& each : attached_) {
    if (each.context == context) {
      return &each;
    }
  }
  return nullptr;
}

Contexts::Green* Contexts::find(CUgreenCtx green) noexcept {
  for (Green& each : greens_) {
    if (each.green == green) {
      return &each;
    }
  }
  return nullptr;
}

bool Contexts::retained(int device, CUcontext primary) noexcept {
  LockGuard guard(lock_);
  Primary* known = find(device);
  if (known == nullptr) {
    primaries_.add({.device = device, .holds = 1, .context = primary});
    return true;
  }
  known->context = primary != nullptr ? primary : known->context;
  return known->holds++ == 0;
}

void Contexts::released(int device) noexcept {
  LockGuard guard(lock_);
  Primary* known = find(device);
  if (known != nullptr && known->holds != 0) {
    --known->holds;
  }
}

bool Contexts::may_end(int device) noexcept {
  LockGuard guard(lock_);
  Primary* known = find(device);
  return known == nullptr || known->holds <= 1;
}

CUcontext Contexts::primary(int device) noexcept {
  LockGuard guard(lock_);
  Primary* known = find(device);
  return known != nullptr ? known->context : nullptr;
}

bool Contexts::is_primary(CUcontext context) noexcept {
  LockGuard guard(lock_);
  for (const Primary& each : primaries_) {
    if (context != nullptr && each.context == context) {
      return true;
    }
  }
  return false;
}

void Contexts::attached(CUcontext context) noexcept {
  LockGuard guard(lock_);
  Attached* known = find(context);
  if (known != nullptr) {
    ++known->times;
  } else {
    attached_.add({.context = context, .times = 1});
  }
}

bool Contexts::detach_ends(CUcontext context) noexcept {
  LockGuard guard(lock_);
  return find(context) == nullptr;
}

void Contexts::detached(CUcontext context) noexcept {
  LockGuard guard(lock_);
  Attached* known = find(context);
  if (known != nullptr && --known->times == 0) {
    attached_.remove_at(static_cast<size_t>(known - attached_.begin()));
  }
}

void Contexts::green_made(CUgreenCtx green, int device) noexcept {
  LockGuard guard(lock_);
  greens_.add({.green = green, .device = device, .context = nullptr});
}

void Contexts::green_named(CUgreenCtx green, CUcontext context) noexcept {
  LockGuard guard(lock_);
  if (Green* known = find(green); known != nullptr) {
    known->context = context;
  }
}

int Contexts::find_green(CUgreenCtx green, CUcontext& context) noexcept {
  LockGuard guard(lock_);
  Green* known = find(green);
  context = known != nullptr ? known->context : nullptr;
  return known != nullptr ? known->device : -1;
}

void Contexts::green_ended(CUgreenCtx green) noexcept {
  LockGuard guard(lock_);
  if (Green* known = find(green); known != nullptr) {
    greens_.remove_at(static_cast<size_t>(known - greens_.begin()));
  }
}

void Contexts::ended(CUcontext context) noexcept {
  LockGuard guard(lock_);
  if (Attached* known = find(context); known != nullptr) {
    attached_.remove_at(static_cast<size_t>(known - attached_.begin()));
  }
}

}  // namespace xlog
