// How fork is noticed: by a page that the kernel wipes in the child, not by getpid (a system call, and different in a
// vfork child, which shares the parent's memory).
#pragma once

#include <cstdint>

namespace xlog {

// 0 in the process that loaded the library, 1 in its fork child, 2 in that child's child...
uint32_t fork_age() noexcept;

}  // namespace xlog
