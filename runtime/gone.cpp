// Freed pointers as the program's other calls see them: natively the driver knows nothing of a freed pointer (cuMemGetAddressRange
// 500, attributes, copies and sets 1: tests/gpu/results), so neither may it seem to while a backend keeps the block.
#include "runtime/runtime.h"

namespace xlog {

bool Runtime::is_gone(CUdeviceptr ptr) noexcept {
  bool gone = false;
  each_source([&](PlainSource& source) { gone = gone || source.hides(ptr); });
  return gone;
}

}  // namespace xlog
