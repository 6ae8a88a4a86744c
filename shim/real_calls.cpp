#include "shim/real_calls.h"

#include <atomic>

#include "shim/elf_symbols.h"
#include "shim/newer_calls.h"
#include "shim/nvml_types.h"

namespace xlog {

namespace {

constexpr const char* kNames[kRows] = {
#define XLOG_ROW(role, name) #name,
#include "shim/intercepted.def"
#undef XLOG_ROW
};

// Each listed function may be defined by the driver and by interposers that lie between us and it.
constexpr size_t kDefinitions = 4;

struct Known {
  std::atomic<void*> real;    // that we call: the next one in the search order
  std::atomic<void*> driver;  // the driver's own
  std::atomic<void*> seen[kDefinitions];
};
constinit Known known[kRows] = {};

void note(Known& row, void* address, bool driver) noexcept {
  for (auto& each : row.seen) {
    void* empty = nullptr;
    if (each.load(std::memory_order_acquire) == address || each.compare_exchange_strong(empty, address) || empty == address) {
      break;
    }
  }
  if (driver) {
    row.driver.store(address, std::memory_order_release);
  }
}

}  // namespace

const char* row_name(Row row) noexcept { return kNames[static_cast<size_t>(row)]; }

Row find_row(const char* name) noexcept {
  for (size_t i = 0; i < kRows; ++i) {
    if (same_text(kNames[i], name)) {
      return static_cast<Row>(i);
    }
  }
  return Row::count;
}

void* entry_of(Row row) noexcept {
  static constexpr void* (*kEntries[kRows])() = {
#define XLOG_ROW(role, name) [] { return reinterpret_cast<void*>(&::name); },
#include "shim/intercepted.def"
#undef XLOG_ROW
  };
  return kEntries[static_cast<size_t>(row)]();
}

void adopt_file_of(const void* address) noexcept {
  LoadedFile file = file_of(address);
  if (!file || file.is_ours()) {
    return;
  }
  for (size_t i = 0; i < kRows; ++i) {
    void* found = file.find(kNames[i]);
    if (found != nullptr) {
      note(known[i], found, file.is_driver());
    }
  }
}

void adopt_definition(Row row, void* address) noexcept {
  Known& entry = known[static_cast<size_t>(row)];
  bool driver = file_of(address).is_driver();
  note(entry, address, driver);
  adopt_file_of(address);
  if (!driver) {  // an interposer's, from its own dlsym: it is called before the driver, so that it too sees the call
    entry.real.store(address, std::memory_order_release);
  }
}

void* driver_of(Row row) noexcept { return known[static_cast<size_t>(row)].driver.load(std::memory_order_acquire); }

void* real_of(Row row) noexcept {
  Known& entry = known[static_cast<size_t>(row)];
  void* real = entry.real.load(std::memory_order_acquire);
  if (real == nullptr) {
    real = next_definition(kNames[static_cast<size_t>(row)]);
    if (real == nullptr) {
      real = other_definition(kNames[static_cast<size_t>(row)]);
    }
    if (real != nullptr) {
      adopt_file_of(real);
      LoadedFile driver = driver_file();
      void* own = driver ? driver.find(kNames[static_cast<size_t>(row)]) : nullptr;
      if (own != nullptr) {
        adopt_file_of(own);
      }
      entry.real.store(real, std::memory_order_release);
    }
  }
  return real;
}

void* entry_for(void* real) noexcept {
  for (size_t i = 0; i < kRows; ++i) {
    for (auto& each : known[i].seen) {
      void* seen = each.load(std::memory_order_acquire);
      if (seen == real && seen != nullptr) {
        return entry_of(static_cast<Row>(i));
      }
    }
  }
  return real;
}

void forget_unloaded() noexcept {
  bool loaded[kRows][kDefinitions] = {};
  find_file(  // one walk over the loaded files: a program may close many
      [](const LoadedFile& file, const void* context) {
        auto* found = static_cast<bool(*)[kDefinitions]>(const_cast<void*>(context));
        for (size_t i = 0; i < kRows; ++i) {
          for (size_t k = 0; k < kDefinitions; ++k) {
            found[i][k] = found[i][k] || file.contains(known[i].seen[k].load(std::memory_order_acquire));
          }
        }
        return false;
      },
      loaded);
  for (size_t i = 0; i < kRows; ++i) {
    for (size_t k = 0; k < kDefinitions; ++k) {
      void* seen = known[i].seen[k].load(std::memory_order_acquire);
      if (seen != nullptr && !loaded[i][k]) {
        void* gone = seen;
        known[i].seen[k].store(nullptr, std::memory_order_release);
        known[i].real.compare_exchange_strong(gone, nullptr);
        known[i].driver.compare_exchange_strong(seen, nullptr);
      }
    }
  }
}

bool fill_driver_api(DriverApi& out) noexcept {
  LoadedFile driver = driver_file();
  if (!driver) {
    void* init = real_of(Row::cuInit);
    driver = init != nullptr ? file_of(init) : LoadedFile();
  }
  if (!driver) {
    return false;
  }
#define XLOG_DRIVER_CALL(name)                                             \
  {                                                                        \
    Row row = find_row(#name);                                             \
    void* address = row != Row::count ? real_of(row) : driver.find(#name); \
    out.name = reinterpret_cast<name##_t>(address);                        \
  }
#include "runtime/base/driver_calls.def"
#undef XLOG_DRIVER_CALL
  return true;
}

}  // namespace xlog
