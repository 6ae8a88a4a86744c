// The real functions behind the list: found once, looked up by address. A resolver answers first; the address that it
// returned is then looked up here, never its name, so that version and variant are always what the driver chose.
// Thread-safe; no allocation, no lock.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/base/driver_api.h"

namespace xlog {

enum class Row : uint8_t {
#define XLOG_ROW(role, name) name,
#include "shim/intercepted.def"
#undef XLOG_ROW
  count
};
inline constexpr size_t kRows = static_cast<size_t>(Row::count);

const char* row_name(Row row) noexcept;
// Row::count when the name is not on the list.
Row find_row(const char* name) noexcept;
// Our entry point.
void* entry_of(Row row) noexcept;

// What our entry forwards to: what the next one in the search order gave. nullptr when there is none.
void* real_of(Row row) noexcept;
// The driver's own, past every interposer; nullptr when no driver is known. For calls that come back to us while one of
// ours is being served: some libraries export the driver's names and forward to what dlsym gives them, which is us.
void* driver_of(Row row) noexcept;
// Whether a function is ours to answer for, so that the program is given our entry in its place: `address` is in the driver
// or its management library, whose functions are then known, or it is what our entry forwards to. The functions of a second
// driver are not, unless the first one is of no use: cuInit failed in it, or nothing is linked to it.
bool adopt_definition(Row row, void* address) noexcept;
// The same for what another interposer's dlsym gave in place of `driver`, the driver's own function: our entry calls the
// interposer's first.
bool adopt_in_front(Row row, void* address, void* driver) noexcept;
// Whether any function was adopted.
bool knows_any() noexcept;
// Our entry for a real address, or the address itself when it is none of ours.
void* entry_for(void* real) noexcept;
// After dlclose: forgets addresses whose file is gone.
void forget_unloaded() noexcept;
// What cuInit said.
void driver_answered(bool success) noexcept;

// The table for the runtime, of the driver in use. False when no driver is loaded.
bool fill_driver_api(DriverApi& out) noexcept;
// Fills `out` when the driver in use is another one than when the table was filled last.
bool refill_driver_api(DriverApi& out) noexcept;

// A name that is not on the list was asked for.
void note_unhooked(const char* name) noexcept;

}  // namespace xlog
