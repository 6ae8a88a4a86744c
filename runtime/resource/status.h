// What a resource answers. Nothing throws across the interface; the shim turns a status into the CUresult that the
// program would have seen (`code`). The five errors, their numbers and texts: the stack's specification, section 1.
#pragma once

#include <cstdint>
#include <utility>

#include "runtime/base/cuda_types.h"
#include "runtime/base/text.h"
#include "runtime/resource/types.h"

namespace xlog {

enum class Error : uint8_t { none, out_of_budget, driver, stream_misuse, use_after_free, out_of_bounds };

std::string_view error_name(Error error) noexcept;  // OutOfBudget, Driver, ...; `ok`

struct [[nodiscard]] Status {
  Error error = Error::none;
  CUresult code = CUDA_SUCCESS;  // driver: its own code, always; out_of_budget: CUDA_ERROR_OUT_OF_MEMORY
  // out_of_budget, bytes: what was asked, what was in use, what was left, what is allowed.
  uint64_t requested = 0;
  uint64_t current = 0;
  uint64_t remaining = 0;
  uint64_t limit = 0;
  Generation generation{};       // use_after_free, out_of_bounds
  const char* detail = nullptr;  // driver, stream_misuse: what was wrong, a literal

  [[nodiscard]] bool ok() const noexcept { return error == Error::none; }

  static Status from(CUresult result, const char* detail = nullptr) noexcept {
    return {.error = result == CUDA_SUCCESS ? Error::none : Error::driver, .code = result, .detail = detail};
  }
  static Status out_of_budget(uint64_t requested, uint64_t current, uint64_t limit) noexcept {
    return {.error = Error::out_of_budget,
            .code = CUDA_ERROR_OUT_OF_MEMORY,
            .requested = requested,
            .current = current,
            .remaining = limit > current ? limit - current : 0,
            .limit = limit};
  }
  static Status stream_misuse(const char* detail) noexcept {
    return {.error = Error::stream_misuse, .code = CUDA_ERROR_INVALID_VALUE, .detail = detail};
  }
  static Status use_after_free(Generation generation) noexcept {
    return {.error = Error::use_after_free, .code = CUDA_ERROR_INVALID_VALUE, .generation = generation};
  }
  static Status out_of_bounds(Generation generation) noexcept {
    return {.error = Error::out_of_bounds, .code = CUDA_ERROR_ILLEGAL_ADDRESS, .generation = generation};
  }
};
using ResourceError = Status;

// A value, or the error that stands in its place.
template <class T>
class [[nodiscard]] ResourceResult {
 public:
  ResourceResult(T&& value) noexcept : value_(std::move(value)) {}  // NOLINT(google-explicit-constructor)
  ResourceResult(const Status& error) noexcept : status_(error) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool ok() const noexcept { return status_.ok(); }
  [[nodiscard]] const Status& status() const noexcept { return status_; }
  [[nodiscard]] T& value() noexcept { return value_; }
  T& operator*() noexcept { return value_; }
  T* operator->() noexcept { return &value_; }

 private:
  Status status_{};
  T value_{};
};

// Text for people and for the column `message`: `out of budget: current ... bytes, requested ... bytes, ...`.
void put_status(TextSink& out, const Status& status) noexcept;

// The same, as a log carries it: cut to 256 bytes where a character ends, with an ellipsis when it was cut.
inline constexpr size_t kMostMessage = 256;
using MessageText = Text<kMostMessage + 3>;
void put_message(MessageText& out, const Status& status) noexcept;
// Cuts `text` to at most `limit` bytes where a UTF-8 character ends.
std::string_view cut_text(std::string_view text, size_t limit) noexcept;

}  // namespace xlog
