// Functions of the driver that begin or end a life (lifetime.def), by name.
#pragma once

#include <string_view>

namespace xlog {

// A name as a resolver is asked for it, without version and stream suffix: it is of a family that begins or ends lives, and this
// version of the library knows no such function. Calls nothing.
bool is_unknown_lifetime(std::string_view name) noexcept;

}  // namespace xlog
