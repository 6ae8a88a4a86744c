#include "tools/command/version.h"

#include "version.inc"

namespace xlog::tools {

std::string version() { return XLOG_VERSION; }

}  // namespace xlog::tools
