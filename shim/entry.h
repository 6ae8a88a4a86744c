// What every entry does first: marks the thread as inside, keeps errno, finds the real function, and decides whether the
// stack serves the call or the driver does.
#pragma once

#include <cerrno>
#include <type_traits>

#include "runtime/base/thread.h"
#include "runtime/runtime.h"
#include "shim/export.h"
#include "shim/real_calls.h"

namespace xlog {

class Entry {
 public:
  explicit Entry(Row row) noexcept : saved_errno_(errno), real_(real_of(row)) {
    if (ReentryGuard::nested()) {
      void* driver = driver_of(row);
      real_ = driver != nullptr ? driver : real_;
    } else if (real_ != nullptr) {
      runtime_ = open();
    }
  }
  ~Entry() { errno = saved_errno_; }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  // The stack serves the call. Otherwise it goes to the driver as it came.
  [[nodiscard]] bool serves() const noexcept { return runtime_ != nullptr && runtime_->engaged(); }
  [[nodiscard]] Runtime& runtime() const noexcept { return *runtime_; }
  // The result, which may be a fault at one of the guard's fences.
  CUresult explained(CUresult result, std::string_view api) noexcept {
    return result == CUDA_ERROR_ILLEGAL_ADDRESS && serves() ? runtime_->explained(result, api) : result;
  }
  // A limit or a check could not be read: nothing may run without it.
  [[nodiscard]] bool refused() const noexcept { return refused_; }

  // The driver's own call. What libcuda does to errno is between it and the program.
  template <class Call, class... Args>
  CUresult forward(Args... args) noexcept {
    if (real_ == nullptr) {
      return CUDA_ERROR_NOT_INITIALIZED;  // no driver is loaded
    }
    errno = saved_errno_;
    CUresult result = reinterpret_cast<Call>(real_)(args...);
    saved_errno_ = errno;
    return result;
  }

 private:
  Runtime* open() noexcept;

  ReentryGuard guard_;
  int saved_errno_;
  void* real_;
  Runtime* runtime_ = nullptr;
  bool refused_ = false;
};

void check_at_exit(const Runtime& runtime) noexcept;

// Where the code that called an entry goes on: its stack begins there.
#define XLOG_CALLER __builtin_extract_return_addr(__builtin_return_address(0))

// The program's call, as the stack makes it (DriverCall): the block is known by what the call wrote to `*out`, an address
// or a handle. Refers to both.
template <class Made, class Call>
auto making(Made* const& out, Call& call) noexcept {
  return [&out, &call](uint64_t& made) noexcept {
    CUresult result = call();
    if (result == CUDA_SUCCESS) {
      if constexpr (std::is_pointer_v<Made>) {
        made = reinterpret_cast<uint64_t>(*out);
      } else {
        made = *out;
      }
    }
    return result;
  };
}

}  // namespace xlog
