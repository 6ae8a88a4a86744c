// What of the guard is switched on. The guard needs nothing else of the options.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/options.h"

namespace xlog {

struct GuardSettings {
  size_t zone = 0;  // bytes behind each block; 0: none
  bool poison_alloc = false;
  bool poison_free = false;
  uint64_t quarantine = 0;           // bytes of freed blocks that are held back
  uint64_t most_extra = UINT64_MAX;  // bytes that zones and fences may take of the GPU
  FenceSpec fence{};
  uint32_t check_launches = 0;  // look after so many launches; 0: not
};

}  // namespace xlog
