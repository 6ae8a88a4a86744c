// The library's one constructor: it keeps our variables as the program was started with them (start_environment.h). It
// calls no function and, where there is none of our variables, writes one byte.
#include "runtime/base/start_environment.h"

namespace {

// The loader passes the program's arguments and environment to constructors.
[[gnu::constructor]] void start(int, char**, char** environment) { xlog::start_environment.keep(environment); }

}  // namespace
