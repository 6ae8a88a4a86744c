// The variables of this library as they were when the program was started. A program may clear its environment, set
// variables or write over the memory that they stand in (as setproctitle does) before it first calls the driver; that
// changes nothing. A fork child has its parent's, a program that is started anew has its own. In a program with raised
// privileges there are none, as with secure_getenv.
//
// shim/start.cpp fills it in a constructor. Where that did not run (in a C++ program that links the runtime, or in a call
// that comes before it), the environment is read as it is.
#pragma once

#include <cstddef>
#include <string_view>

namespace xlog {

class StartEnvironment {
 public:
  // Keeps the variables whose names begin with XLOG, in whatever case. Calls nothing: what is reached before the program's
  // own constructors must not be what the program replaces (sanitizers, allocators).
  void keep(const char* const* environment) noexcept {
    for (const char* const* each = environment; each != nullptr && *each != nullptr; ++each) {
      if (is_ours(*each) && !add(*each)) {
        overflowed_ = true;
      }
    }
    kept_ = true;
  }

  // The value of a variable, or nullptr.
  [[nodiscard]] const char* value(const char* name) const noexcept;
  // Calls visit(name) for each of our variables, known or not.
  template <class Visit>
  void each_name(Visit visit) const noexcept {
    for (const char* each = next(nullptr); each != nullptr; each = next(each)) {
      std::string_view text(each);
      visit(text.substr(0, text.find('=')));
    }
  }
  // There were more than could be kept: none may then be trusted.
  [[nodiscard]] bool overflowed() const noexcept { return overflowed_; }

 private:
  static constexpr size_t kBytes = 32 << 10;
  static bool is_ours(const char* text) noexcept {
    return (text[0] | 0x20) == 'x' && (text[1] | 0x20) == 'l' && (text[2] | 0x20) == 'o' && (text[3] | 0x20) == 'g';
  }
  bool add(const char* text) noexcept {
    size_t at = used_;
    for (size_t i = 0;; ++i) {
      if (at == kBytes) {
        return false;
      }
      text_[at++] = text[i];
      __asm__ volatile("" ::: "memory");  // else the compiler calls strlen and memcpy
      if (text[i] == '\0') {
        used_ = at;
        return true;
      }
    }
  }
  // The first or the next variable, `NAME=value`; nullptr behind the last.
  [[nodiscard]] const char* next(const char* entry) const noexcept;

  bool kept_ = false;
  bool overflowed_ = false;
  size_t used_ = 0;
  char text_[kBytes] = {};
};

extern StartEnvironment start_environment;

}  // namespace xlog
