// The library's own functions, for programs that know of it.
#include "runtime/base/thread_tags.h"
#include "shim/entry.h"

extern "C" XLOG_EXPORT unsigned xlog_guard_check() {
  xlog::ReentryGuard guard;
  xlog::Runtime* runtime = xlog::ReentryGuard::nested() ? nullptr : xlog::Runtime::get();
  return runtime != nullptr && runtime->is_prepared() && runtime->engaged() ? runtime->check_on_request() : 0;
}

extern "C" XLOG_EXPORT int xlog_tag_push(const char* name) {
  xlog::ReentryGuard guard;
  return xlog::ReentryGuard::nested() || name == nullptr ? -1 : xlog::push_tag(0, name);
}

extern "C" XLOG_EXPORT int xlog_tag_pop() {
  xlog::ReentryGuard guard;
  return xlog::ReentryGuard::nested() ? -1 : xlog::pop_tag(0);
}

extern "C" XLOG_EXPORT void xlog_query_id(const char* id) {
  xlog::ReentryGuard guard;
  if (!xlog::ReentryGuard::nested()) {
    xlog::set_query_id(id != nullptr ? id : "");
  }
}
