// A library whose constructor empties the environment, before the program begins.
#include <cstdlib>

namespace {
[[gnu::constructor]] void clear() { clearenv(); }
}  // namespace
