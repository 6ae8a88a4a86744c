// Memory for the library's own state: private pages straight from the kernel, because malloc belongs to the program
// (which may trace it, replace it, or be inside it).
#pragma once

#include <cstddef>

namespace xlog {

// Zeroed pages, or nullptr when there is no memory. `bytes` is rounded up to pages. All of it is zero in a fork child
// (MADV_WIPEONFORK), so a child starts as a process that has done nothing yet; a vfork child shares it and changes
// nothing.
void* map_state(size_t bytes) noexcept;
// The same, and a fork child keeps a copy: for state whose owner lives in ordinary memory.
void* map_kept(size_t bytes) noexcept;
void unmap_state(void* data, size_t bytes) noexcept;

}  // namespace xlog
