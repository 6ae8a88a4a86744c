// The calling thread's stack as return addresses. Two implementations, chosen when linking: libunwind, and none.
// Takes no lock of ours and must not be called while one is held: an unwinder takes the loader's.
#pragma once

#include <cstddef>
#include <cstdint>

namespace xlog {

inline constexpr size_t kMaxDepth = 128;

// Fills `out` with at most `depth` addresses, innermost first, each inside the calling instruction (return address - 1).
// Frames below the one that returns to `caller` are left out; when `caller` is not found, none is. Returns the number.
size_t take_backtrace(uintptr_t* out, size_t depth, const void* caller) noexcept;

// Runs the unwinder once, outside any intercepted allocation, so that what it sets up on first use is set up.
void warm_backtrace() noexcept;

// To be called when a library was unloaded: what the unwinder remembers of its addresses is no longer true.
void forget_modules() noexcept;

}  // namespace xlog
