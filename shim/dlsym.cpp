// What dlsym.S asks: the answer for a listed name, in the scope that the program asked in.
#include <dlfcn.h>
#include <errno.h>

#include <atomic>

#include "runtime/base/backtrace.h"
#include "runtime/base/diagnostics.h"
#include "shim/elf_symbols.h"
#include "shim/export.h"
#include "shim/real_calls.h"

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

bool reaches(const void* caller, const char* name) noexcept {
  void* handle = open_loaded(xlog::file_of(caller).info().dlpi_name);
  bool found = handle != nullptr && call_next(handle, name) != nullptr;
  close_loaded(handle);
  return found;
}

// The driver's answer to RTLD_DEFAULT is hidden behind our own export. Whether the caller's scope reaches the driver is
// asked with a name that we do not export: in the global scope, then in the caller's own.
void* find_behind_us(const char* name, const void* caller) noexcept {
  void* found = xlog::other_definition(name);
  const char* unlisted = *name == 'c' ? "cuDeviceGetCount" : "nvmlDeviceGetCount_v2";
  if (found == nullptr || xlog::file_of(found).find(unlisted) == nullptr) {
    return found;
  }
  if (call_next(RTLD_DEFAULT, unlisted) != nullptr) {
    return found;
  }
  return reaches(caller, unlisted) ? found : nullptr;
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
    xlog::note_unhooked(name);
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
  if (found != nullptr) {
    xlog::adopt_definition(row, found);
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
  xlog::forget_modules();
  int result = reinterpret_cast<Call>(real)(handle);
  int saved = errno;
  xlog::forget_modules();
  xlog::forget_unloaded();
  errno = saved;
  return result;
}
