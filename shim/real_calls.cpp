#include "shim/real_calls.h"

#include <atomic>

#include "runtime/base/file_set.h"
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

enum class Start : uint32_t { unknown, succeeded, failed };

constinit FileSet adopted{};
constinit std::atomic<uintptr_t> chosen{0};  // where the driver in use begins; 0 when there is none
constinit std::atomic<Start> start{Start::unknown};
constinit std::atomic<uint32_t> choices{0};   // how often another one was chosen
constinit std::atomic<uint32_t> table_of{0};  // `choices` when the table was filled

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

bool is_seen(const Known& row, const void* address) noexcept {
  for (const auto& each : row.seen) {
    if (each.load(std::memory_order_acquire) == address) {
      return true;
    }
  }
  return false;
}

// The driver that the program's linked calls reach.
LoadedFile linked_driver() noexcept {
  LoadedFile first = driver_file();
  return first && started_with(first.begin()) ? first : LoadedFile();
}

// Whether this driver is the one in use from here on.
bool choose(const LoadedFile& file) noexcept {
  uintptr_t before = chosen.load(std::memory_order_acquire);
  if (before == file.begin()) {
    return true;
  }
  Start answer = start.load(std::memory_order_acquire);
  if (before != 0 && (answer == Start::succeeded || (answer == Start::unknown && linked_driver().begin() == before))) {
    return false;
  }
  if (!chosen.compare_exchange_strong(before, file.begin(), std::memory_order_acq_rel)) {
    return before == file.begin();
  }
  start.store(Start::unknown, std::memory_order_release);
  choices.fetch_add(1, std::memory_order_acq_rel);
  for (Known& row : known) {  // an interposer's stay
    void* old = row.driver.exchange(nullptr, std::memory_order_acq_rel);
    row.real.compare_exchange_strong(old, nullptr);
  }
  return true;
}

bool adopt_file(const LoadedFile& file) noexcept {
  if (!file || file.is_ours() || (file.is_driver() && !choose(file))) {
    return false;
  }
  adopted.add(file.info());
  for (size_t i = 0; i < kRows; ++i) {
    void* found = file.find(kNames[i]);
    if (found != nullptr) {
      note(known[i], found, file.is_driver() || file.is_nvml());
    }
  }
  return true;
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

bool adopt_definition(Row row, void* address) noexcept {
  LoadedFile file = file_of(address);
  if (file.is_driver() && chosen.load(std::memory_order_acquire) == 0) {
    adopt_file(linked_driver());  // asking for another's function changes nothing for the linked calls
  }
  if (file.is_driver() || file.is_nvml()) {
    bool current = file.is_nvml() || chosen.load(std::memory_order_acquire) == file.begin();
    return (current && is_seen(known[static_cast<size_t>(row)], address)) || adopt_file(file);
  }
  return !file.is_ours() && address == next_definition(row_name(row)) && adopt_file(file);
}

bool adopt_in_front(Row row, void* address, void* driver) noexcept {
  LoadedFile file = file_of(driver);
  if (!(file.is_driver() || file.is_nvml()) || !adopt_file(file) || !adopt_file(file_of(address))) {
    return false;
  }
  Known& entry = known[static_cast<size_t>(row)];
  note(entry, address, false);
  entry.real.store(address, std::memory_order_release);
  return true;
}

bool knows_any() noexcept { return !adopted.empty(); }

void* driver_of(Row row) noexcept { return known[static_cast<size_t>(row)].driver.load(std::memory_order_acquire); }

void* real_of(Row row) noexcept {
  Known& entry = known[static_cast<size_t>(row)];
  void* real = entry.real.load(std::memory_order_acquire);
  if (real != nullptr) {
    return real;
  }
  real = next_definition(kNames[static_cast<size_t>(row)]);
  LoadedFile file = real != nullptr ? file_of(real) : LoadedFile();
  if (file.is_driver()) {  // the first that was loaded, which need not be the one in use
    if (chosen.load(std::memory_order_acquire) == 0) {
      adopt_file(file);
    }
    void* own = driver_of(row);
    real = own != nullptr ? own : real;
  } else if (file) {
    adopt_file(file);
    adopt_file(driver_file());
  } else if (adopt_file(driver_file())) {  // it is before us where the library was not preloaded
    real = driver_of(row);
  }
  if (real != nullptr) {
    entry.real.store(real, std::memory_order_release);
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
  adopted.forget_unloaded(
      [](uintptr_t begin, uintptr_t end, void*) {
        auto forget = [begin, end](std::atomic<void*>& each) {
          void* address = each.load(std::memory_order_acquire);
          if (reinterpret_cast<uintptr_t>(address) - begin < end - begin) {
            each.compare_exchange_strong(address, nullptr);
          }
        };
        for (Known& row : known) {
          forget(row.real);
          forget(row.driver);
          for (auto& seen : row.seen) {
            forget(seen);
          }
        }
        if (chosen.compare_exchange_strong(begin, 0)) {
          start.store(Start::unknown, std::memory_order_release);
        }
      },
      nullptr);
}

void driver_answered(bool success) noexcept {
  Start before = Start::unknown;
  start.compare_exchange_strong(before, success ? Start::succeeded : Start::failed);
  if (success) {
    start.store(Start::succeeded, std::memory_order_release);
  }
}

bool refill_driver_api(DriverApi& out) noexcept {
  return table_of.load(std::memory_order_acquire) != choices.load(std::memory_order_acquire) && fill_driver_api(out);
}

bool fill_driver_api(DriverApi& out) noexcept {
  if (chosen.load(std::memory_order_acquire) == 0) {
    adopt_file(driver_file());
  }
  uint32_t choice = choices.load(std::memory_order_acquire);
  LoadedFile driver = file_of(reinterpret_cast<const void*>(chosen.load(std::memory_order_acquire)));
  if (!driver) {
    void* init = real_of(Row::cuInit);
    driver = init != nullptr ? file_of(init) : LoadedFile();
  }
  if (!driver) {
    return false;
  }
  table_of.store(choice, std::memory_order_release);
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
