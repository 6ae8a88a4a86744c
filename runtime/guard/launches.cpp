#include "runtime/guard/launches.h"

#include <string.h>

namespace xlog {

namespace {

constexpr std::string_view kGraph = "graph";

// A launch takes a kernel or a function. Drivers before 12.3 do not tell names.
const char* name_of(const DriverApi& driver, CUfunction function) noexcept {
  const char* name = nullptr;
  if (function == nullptr) {
    return kGraph.data();
  }
  if (driver.cuFuncGetName != nullptr && driver.cuFuncGetName(&name, function) == CUDA_SUCCESS && name != nullptr) {
    return name;
  }
  bool known = driver.cuKernelGetName != nullptr && driver.cuKernelGetName(&name, reinterpret_cast<CUkernel>(function)) == CUDA_SUCCESS;
  return known && name != nullptr ? name : "?";
}

}  // namespace

bool Launch::is_kernel() const noexcept { return of_name != 0 && text() != kGraph && text() != "?" && text().size() + 1 < sizeof name; }

uint64_t Launches::count_name(std::string_view name) noexcept {
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  hash |= 1;
  constexpr size_t kTries = 64;  // where so many names stand side by side, the next one is not counted
  for (size_t i = 0; i < kTries; ++i) {
    Name& each = names_[(hash + i) % kNames];
    uint64_t known = each.hash.load(std::memory_order_relaxed);
    bool ours = known == hash || (known == 0 && (each.hash.compare_exchange_strong(known, hash) || known == hash));
    if (ours) {
      return each.count.fetch_add(1, std::memory_order_relaxed) + 1;
    }
  }
  return 0;
}

Launch Launches::note(const DriverApi& driver, CUfunction function) noexcept {
  Launch launch;
  const char* name = name_of(driver, function);
  size_t size = strnlen(name, 4096);
  memcpy(launch.name, name, size < sizeof launch.name ? size : sizeof launch.name - 1);
  launch.of_name = count_name({name, size});
  LockGuard guard(lock_);
  launch.number = ++count_;
  last_[launch.number % kLast] = launch;
  return launch;
}

size_t Launches::last(Launch (&out)[kLast]) noexcept {
  LockGuard guard(lock_);
  size_t known = count_ < kLast ? count_ : kLast;
  for (size_t i = 0; i < known; ++i) {
    out[i] = last_[(count_ - i) % kLast];
  }
  return known;
}

}  // namespace xlog
