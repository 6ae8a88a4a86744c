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
// Takes note of a file that defines listed functions: the driver, or another interposer between us and it.
void adopt_file_of(const void* address) noexcept;
// The same, for an address that dlsym gave for a listed name (an interposer's may be no export of its file).
void adopt_definition(Row row, void* address) noexcept;
// Our entry for a real address, or the address itself when it is none of ours.
void* entry_for(void* real) noexcept;
// After dlclose: forgets addresses whose file is gone.
void forget_unloaded() noexcept;

// The table for the runtime. False when no driver is loaded.
bool fill_driver_api(DriverApi& out) noexcept;

// A name that is not on the list was asked for.
void note_unhooked(const char* name) noexcept;

}  // namespace xlog
