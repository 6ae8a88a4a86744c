#include "runtime/base/start_environment.h"

#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <cstring>

namespace xlog {

constinit StartEnvironment start_environment;

const char* StartEnvironment::value(const char* name) const noexcept {
  if (!kept_) {
    return secure_getenv(name);
  }
  size_t length = std::strlen(name);
  for (const char* each = next(nullptr); each != nullptr; each = next(each)) {
    if (std::strncmp(each, name, length) == 0 && each[length] == '=') {
      return each + length + 1;
    }
  }
  return nullptr;
}

const char* StartEnvironment::next(const char* entry) const noexcept {
  if (getauxval(AT_SECURE) != 0) {
    return nullptr;
  }
  if (kept_) {
    const char* following = entry == nullptr ? text_ : entry + std::strlen(entry) + 1;
    return following < text_ + used_ ? following : nullptr;
  }
  bool passed = entry == nullptr;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    if (passed && is_ours(*each)) {
      return *each;
    }
    passed = passed || *each == entry;
  }
  return nullptr;
}

}  // namespace xlog
