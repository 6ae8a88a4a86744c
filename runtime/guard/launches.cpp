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

bool Launch::is_kernel() const noexcept { return text() != kGraph && text() != "?" && text().size() + 1 < sizeof name; }

uint64_t Launches::count_name(std::string_view name) noexcept {
  uint64_t hash = 0xCBF29CE484222325ULL;
  for (char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3ULL;
  }
  hash |= 1;
  for (size_t i = 0; i < kNames; ++i) {
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
  launch.number = count_.fetch_add(1, std::memory_order_relaxed) + 1;
  LockGuard guard(lock_);
  last_[launch.number % kLast] = launch;
  return launch;
}

size_t Launches::last(Launch (&out)[kLast]) noexcept {
  LockGuard guard(lock_);
  uint64_t newest = count_.load(std::memory_order_relaxed);
  size_t count = 0;
  for (uint64_t number = newest; number != 0 && count < kLast; --number) {
    const Launch& each = last_[number % kLast];
    if (each.number == number) {  // else it is being written
      out[count++] = each;
    }
  }
  return count;
}

}  // namespace xlog
