// What dlsym.S asks: the answer for a listed name, in the scope that the program asked in.
#include <dlfcn.h>
#include <errno.h>

#include <atomic>

#include "runtime/base/backtrace.h"
#include "runtime/base/diagnostics.h"
#include "runtime/base/file_set.h"
#include "runtime/base/modules.h"
#include "shim/elf_symbols.h"
#include "shim/export.h"
#include "shim/real_calls.h"
#include "shim/self_check.h"

extern "C" {
__attribute__((visibility("hidden"))) std::atomic<void*> xlog_next_dlsym{nullptr};
__attribute__((visibility("hidden"))) void* xlog_find_dlsym() noexcept;
__attribute__((visibility("hidden"))) int xlog_dlsym(void* handle, const char* name, const void* caller, void** answer) noexcept;
}

namespace {

using DlsymCall = void* (*)(void*, const char*);

void* call_next(void* handle, const char* name) noexcept { return reinterpret_cast<DlsymCall>(xlog_find_dlsym())(handle, name); }

// The C library's own: a sanitizer's copies of these cannot run before the sanitizer has begun.
template <class Call>
Call own(std::atomic<void*>& known, const char* name) noexcept {
  void* found = known.load(std::memory_order_acquire);
  if (found == nullptr) {
    found = xlog::c_library_function(name);
    known.store(found, std::memory_order_release);
  }
  return reinterpret_cast<Call>(found);
}

// A handle for a file that is loaded already. Its link map alone will not do: one that came as a dependency has no
// search list of its own.
void* open_loaded(const char* path) noexcept {
  static constinit std::atomic<void*> known{nullptr};
  auto open = own<decltype(&dlopen)>(known, "dlopen");
  return open != nullptr ? open(path, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
}

void close_loaded(void* handle) noexcept {
  static constinit std::atomic<void*> known{nullptr};
  auto close = own<int (*)(void*)>(known, "dlclose");
  if (close != nullptr && handle != nullptr) {
    close(handle);
  }
}

// The search as the C library makes it for code of ours, without the interposers that export dlsym.
void* search(void* handle, const char* name) noexcept {
  static constinit std::atomic<void*> known{nullptr};
  auto call = own<DlsymCall>(known, "dlsym");
  void* found = call != nullptr ? call(handle, name) : nullptr;
  asm volatile("" ::: "memory");  // no tail call: the caller has to be in this library
  return found;
}

// What RTLD_DEFAULT would find without us: our own export hides it. It is looked for behind us in the global scope, then in
// the scope of the caller's own file.
void* find_behind_us(const char* name, const void* caller) noexcept {
  void* found = search(RTLD_NEXT, name);
  if (found == nullptr) {
    void* handle = open_loaded(xlog::file_of(caller).info().dlpi_name);
    found = handle != nullptr ? search(handle, name) : nullptr;
    close_loaded(handle);
    found = found != nullptr && xlog::file_of(found).is_ours() ? nullptr : found;
  }
  return found;
}

// An interposer's dlsym may give a function of its own in place of the driver's.
bool adopt(xlog::Row row, void* found, void* handle, const char* name) noexcept {
  if (xlog::adopt_definition(row, found)) {
    return true;
  }
  if (xlog::file_of(found).is_driver()) {
    xlog::second_driver_handed_out();
    return false;
  }
  void* plain = handle != RTLD_DEFAULT ? search(handle, name) : found;
  return plain != nullptr && plain != found && xlog::adopt_in_front(row, found, plain);
}

// NULL, with dlerror saying so: the name is looked for where it cannot be.
void* fail(const char* name) noexcept {
  static constinit std::atomic<void*> libc{nullptr};  // kept: closing it would take the message back
  void* handle = libc.load(std::memory_order_acquire);
  if (handle == nullptr) {
    handle = open_loaded("libc.so.6");
    libc.store(handle, std::memory_order_release);
  }
  return handle != nullptr ? call_next(handle, name) : nullptr;
}

}  // namespace

void* xlog_find_dlsym() noexcept {
  void* next = xlog_next_dlsym.load(std::memory_order_acquire);
  if (next == nullptr) {
    next = xlog::next_definition("dlsym");
    if (next == nullptr) {
      next = xlog::other_definition("dlsym");
    }
    if (next == nullptr) {
      xlog::say("no dlsym behind this library: the program cannot go on");
      __builtin_trap();
    }
    xlog_next_dlsym.store(next, std::memory_order_release);
  }
  return next;
}

int xlog_dlsym(void* handle, const char* name, const void* caller, void** answer) noexcept {
  xlog::Row row = xlog::find_row(name);
  if (row == xlog::Row::count) {
    if (xlog::knows_any()) {  // before that there is nothing to take note of
      xlog::note_unhooked(name);
    }
    return 0;
  }
  int saved = errno;
  void* found = handle != RTLD_DEFAULT ? call_next(handle, name) : nullptr;
  if (handle == RTLD_DEFAULT || (found != nullptr && found == xlog::entry_of(row))) {
    found = find_behind_us(name, caller);
    if (found == nullptr) {
      found = fail(name);
    }
  }
  if (found != nullptr && adopt(row, found, handle, name)) {
    found = xlog::entry_of(row);
  }
  *answer = found;
  errno = saved;
  return 1;
}

extern "C" XLOG_EXPORT int dlclose(void* handle) noexcept {
  using Call = int (*)(void*);
  static constinit std::atomic<void*> next{nullptr};
  void* real = next.load(std::memory_order_acquire);
  if (real == nullptr) {
    real = xlog::next_definition("dlclose");
    next.store(real, std::memory_order_release);
  }
  int result = reinterpret_cast<Call>(real)(handle);
  if (!xlog::knows_any()) {  // nothing was learned of any file
    return result;
  }
  static constinit std::atomic<uint64_t> unloaded{0};
  uint64_t now = xlog::unloaded_files();
  if (unloaded.exchange(now, std::memory_order_acq_rel) != now) {
    xlog::forget_modules();
    xlog::forget_described();
    xlog::forget_unloaded();
  }
  return result;
}
