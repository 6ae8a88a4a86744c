// Frames for people.
#pragma once

#include <string>
#include <string_view>

#include "tools/log/frame_table.h"

namespace xlog::tools {

// The function, cut where it is very long; where it has no name, the module and the offset.
std::string name_of(const Frame& frame);
// `file:line`, or the module.
std::string where_of(const Frame& frame);

// A path's last part.
std::string_view base_name(std::string_view path);

// A demangled function without its return type, template arguments and parameters: `thrust::vector::resize`. What a function
// is called that stands in another one (a lambda) begins with that one's name.
std::string plain_function(std::string_view function);

}  // namespace xlog::tools
