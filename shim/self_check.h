// At the start, with something switched on: does what the driver hands out still pass through us?
#pragma once

namespace xlog {

// Asks the driver's resolver for every listed function. One line for each whose address is none that we know (a driver
// that hands out trampolines of its own would otherwise unhook us in silence), and for two functions with one address.
void check_routes() noexcept;

}  // namespace xlog
