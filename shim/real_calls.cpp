#include "shim/real_calls.h"

#include <atomic>
#include <cstring>

#include "shim/elf_symbols.h"

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
  std::atomic<void*> real;  // that we call
  std::atomic<void*> seen[kDefinitions];
};
constinit Known known[kRows] = {};

bool is_driver(const void* address) noexcept { return file_of(address).file_name().starts_with("libcuda.so"); }

void note(Known& row, void* address) noexcept {
  for (auto& each : row.seen) {
    void* empty = nullptr;
    if (each.load(std::memory_order_acquire) == address || each.compare_exchange_strong(empty, address) || empty == address) {
      break;
    }
  }
  // Another interposer is called before the driver, so that it too sees the call.
  void* current = row.real.load(std::memory_order_acquire);
  if (current == nullptr || (current != address && is_driver(current) && !is_driver(address))) {
    row.real.store(address, std::memory_order_release);
  }
}

}  // namespace

const char* row_name(Row row) noexcept { return kNames[static_cast<size_t>(row)]; }

Row find_row(const char* name) noexcept {
  for (size_t i = 0; i < kRows; ++i) {
    if (std::strcmp(kNames[i], name) == 0) {
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
      note(known[i], found);
    }
  }
}

void adopt_definition(Row row, void* address) noexcept {
  note(known[static_cast<size_t>(row)], address);
  adopt_file_of(address);
}

void* real_of(Row row) noexcept {
  Known& entry = known[static_cast<size_t>(row)];
  void* real = entry.real.load(std::memory_order_acquire);
  if (real == nullptr) {
    real = next_definition(kNames[static_cast<size_t>(row)]);
    if (real == nullptr) {
      real = other_definition(kNames[static_cast<size_t>(row)]);
    }
    if (real != nullptr) {
      note(entry, real);
      adopt_file_of(real);
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
  for (Known& row : known) {
    for (auto& each : row.seen) {
      void* seen = each.load(std::memory_order_acquire);
      if (seen != nullptr && !file_of(seen)) {
        each.store(nullptr, std::memory_order_release);
        row.real.compare_exchange_strong(seen, nullptr);
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
#define XLOG_DRIVER_CALL(name)                                                              \
  {                                                                                         \
    Row row = find_row(#name);                                                              \
    void* address = row != Row::count ? real_of(row) : driver.find(#name);                  \
    out.name = reinterpret_cast<name##_t>(address);                                         \
  }
#include "runtime/base/driver_calls.def"
#undef XLOG_DRIVER_CALL
  return true;
}

}  // namespace xlog
