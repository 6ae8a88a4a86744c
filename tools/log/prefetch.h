// Memory on its way into the cache while other work goes on.
#pragma once

#include <cstddef>

namespace xlog::tools {

// As __builtin_prefetch, after which GCC takes the function around it for one without effect, and leaves its calls out.
inline void prefetch(const void* at) { __asm__ volatile("prefetcht0 %0" : : "m"(*static_cast<const char*>(at))); }

template <class Object>
void prefetch_all(const Object* object) {
  constexpr size_t kLine = 64;
  for (size_t i = 0; i < sizeof(Object); i += kLine) {
    prefetch(reinterpret_cast<const char*>(object) + i);
  }
}

}  // namespace xlog::tools
