// At the start, with something switched on: does what the driver hands out still pass through us?
#pragma once

namespace xlog {

// Asks the driver's resolver for every listed function. One line for each whose address is none that we know (a driver
// that hands out trampolines of its own would otherwise unhook us in silence), and for two functions with one address.
void check_routes() noexcept;

// With a limit: one line when a library stands in front of ours with a function that makes memory and has no means to hand
// calls on (it does not use dlsym), since our entry is then not reached.
void check_front() noexcept;

// One line when the program was given functions of a second driver beside the one in use, which the limit is not on.
void second_driver_handed_out() noexcept;

}  // namespace xlog
