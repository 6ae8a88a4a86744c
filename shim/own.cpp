// The library's own functions, for programs that know of it.
#include "shim/entry.h"

extern "C" XLOG_EXPORT unsigned xlog_guard_check() {
  xlog::ReentryGuard guard;
  xlog::Runtime* runtime = xlog::ReentryGuard::nested() ? nullptr : xlog::Runtime::get();
  return runtime != nullptr && runtime->is_prepared() && runtime->engaged() ? runtime->check_on_request() : 0;
}
