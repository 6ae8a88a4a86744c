// The walk over the loaded files. The C library holds a lock meanwhile (dl_load_write_lock) that it does not reset in a
// fork child, which would wait for ever in its next dlopen if another thread was walking when it was made. A fork
// therefore waits until nobody walks here. The lock is recursive and is not held while constructors run, so an
// allocation made inside dlopen cannot deadlock. No lock of ours may be held by the caller.
#pragma once

#include <link.h>

#include <cstddef>

namespace xlog {

using VisitLoaded = int (*)(dl_phdr_info* info, size_t size, void* data);

// dl_iterate_phdr. Both waits end after a while, since what they wait for may itself wait for this thread.
int walk_loaded_files(VisitLoaded visit, void* data) noexcept;

// From here on forks wait. Called when the program makes its first listed call; more calls do nothing.
void make_forks_wait() noexcept;

}  // namespace xlog
