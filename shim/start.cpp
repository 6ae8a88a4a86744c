// The library's one constructor: it keeps our variables as the program was started with them (start_environment.h), and what
// its stderr was (diagnostics.h). It calls no function.
#include "runtime/base/diagnostics.h"
#include "runtime/base/start_environment.h"

namespace {

// The loader passes the program's arguments and environment to constructors.
[[gnu::constructor]] void start(int, char**, char** environment) {
  xlog::start_environment.keep(environment);
  xlog::note_stderr();
}

}  // namespace
