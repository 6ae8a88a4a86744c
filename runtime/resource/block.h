// A piece of device memory as the stack knows it, and the calls that make and end one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/base/driver_api.h"

namespace xlog {

// What sort of memory; the column `kind`.
enum class Kind : uint8_t {
  plain,    // cuMemAlloc
  pitch,    // cuMemAllocPitch
  async,    // cuMemAllocAsync: the current pool of the stream's device
  pool,     // cuMemAllocFromPoolAsync
  foreign,  // freed, but never seen made
};

std::string_view kind_name(Kind kind) noexcept;

// A CUstream as it was passed, with the ABI it was passed through: handle 0 means the legacy stream in one and the
// thread's own stream in the other (`_ptsz`).
struct StreamArg {
  CUstream handle = nullptr;
  bool per_thread_abi = false;

  [[nodiscard]] bool is_per_thread() const noexcept { return handle == CU_STREAM_PER_THREAD || (handle == nullptr && per_thread_abi); }
  [[nodiscard]] bool is_legacy() const noexcept { return handle == CU_STREAM_LEGACY || (handle == nullptr && !per_thread_abi); }
};

// Process-wide number of a block, from 1: tells two blocks at one address apart.
uint64_t next_generation() noexcept;

struct AllocationRequest {
  Kind kind = Kind::plain;
  std::string_view api{};  // ABI name of the function that the program called
  const void* caller = nullptr;
  int device = -1;  // that is charged
  CUcontext context = nullptr;
  size_t bytes = 0;            // pitch: least that the driver can take, width x height
  size_t width_bytes = 0;      // pitch
  size_t height = 0;           // pitch
  unsigned element_bytes = 0;  // pitch
  size_t* pitch_out = nullptr;
  StreamArg stream{};           // async, pool
  CUmemoryPool pool = nullptr;  // async: the device's current pool where it is known; pool: as passed
  uint64_t stream_id = 0;       // cuStreamGetId; 0 when it was not needed
  bool as_plain = false;        // async: to be served by cuMemAlloc
};

struct FreeRequest {
  std::string_view api{};
  const void* caller = nullptr;
  bool ordered = false;  // cuMemFreeAsync
  StreamArg stream{};
  uint64_t stream_id = 0;
};

struct DeviceBlock {
  uint64_t ptr = 0;
  size_t bytes = 0;  // requested
  size_t taken = 0;  // what the driver takes for it
  uint64_t generation = 0;
  CUcontext context = nullptr;
  CUmemoryPool pool = nullptr;
  uint64_t stack_id = 0;
  int16_t device = -1;
  Kind kind = Kind::plain;
};

// What cuMemAlloc takes for a request: 512 B steps up to 1 MiB, 2 MiB steps above (measured, facts on the H100).
size_t plain_taken(size_t bytes) noexcept;

// The least that width x height bytes take when pitched; SIZE_MAX when that overflows.
size_t least_pitched(size_t width_bytes, size_t height) noexcept;

}  // namespace xlog
