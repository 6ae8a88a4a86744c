// What code uses that may run before the program's own start: no call of a function that another library can replace. A
// sanitizer's runtime replaces strcmp, mmap and many more, and asks dlsym for the real ones while its own copies cannot run
// yet. The empty assembly keeps the compiler from making a loop into a call of the very function that it stands for.
#pragma once

#include <sys/syscall.h>

#include <cstddef>
#include <cstdint>

namespace xlog {

inline bool same_text(const char* a, const char* b) noexcept {
  for (; *a == *b; ++a, ++b) {
    if (*a == '\0') {
      return true;
    }
    asm volatile("" : "+r"(a), "+r"(b));
  }
  return false;
}

inline bool begins_with(const char* text, const char* prefix) noexcept {
  for (; *prefix != '\0'; ++text, ++prefix) {
    if (*text != *prefix) {
      return false;
    }
    asm volatile("" : "+r"(text), "+r"(prefix));
  }
  return true;
}

// What follows the last slash of a path; an empty text for nullptr.
inline const char* last_component(const char* path) noexcept {
  const char* last = path != nullptr ? path : "";
  for (const char* at = last; *at != '\0'; ++at) {
    last = *at == '/' ? at + 1 : last;
    asm volatile("" : "+r"(at));
  }
  return last;
}

inline uint64_t hash_of_text(const char* text) noexcept {  // FNV-1a
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (; text != nullptr && *text != '\0'; ++text) {
    hash = (hash ^ static_cast<unsigned char>(*text)) * 0x100000001b3ULL;
    asm volatile("" : "+r"(text));
  }
  return hash;
}

// The kernel's answer, which is -errno for a failure. errno itself is left alone.
inline long system_call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) noexcept {
#if defined(__x86_64__)
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  long result = number;
  asm volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9) : "rcx", "r11", "memory");
  return result;
#else
#error "plain_calls.h: this processor is not supported yet"
#endif
}

}  // namespace xlog
