// What the driver says of a GPU, and the limit that the options put on it.
#pragma once

#include <cstdint>

namespace xlog {

struct DeviceFacts {
  char name[128] = {};
  char uuid[48] = {};        // GPU-xxxxxxxx-xxxx-...
  uint64_t total_bytes = 0;  // as the driver says
  uint64_t limit = UINT64_MAX;
};

}  // namespace xlog
