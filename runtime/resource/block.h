// A piece of device memory as the stack knows it, and the calls that make and end one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/base/cuda_types.h"
#include "runtime/resource/types.h"

namespace xlog {

// What sort of memory; the column `kind`.
enum class Kind : uint8_t {
  plain,    // cuMemAlloc
  pitch,    // cuMemAllocPitch
  async,    // cuMemAllocAsync: the current pool of the stream's device
  pool,     // cuMemAllocFromPoolAsync, and what the stack's own pools give out
  managed,  // cuMemAllocManaged: counted whole, wherever its pages are
  array,    // arrays and mipmapped arrays; the block's address is the handle
  vmm,      // cuMemCreate; the block's address is the handle
  graph,    // what the driver reserves for the allocation nodes of graphs; the address means nothing
  host,     // pinned host memory: no GPU's
  import,   // another process's or another API's memory: no GPU's, never charged
  foreign,  // freed, but never seen made
};

std::string_view kind_name(Kind kind) noexcept;

// The block's address is one that cuMemFree takes.
constexpr bool has_address(Kind kind) noexcept { return kind <= Kind::managed || kind == Kind::import; }
// Memory that is counted outside the GPUs' budgets.
constexpr bool is_outside(Kind kind) noexcept { return kind == Kind::host || kind == Kind::import; }

// Who made a block of the shim, and frees it.
enum class Maker : uint8_t {
  driver,  // a call of the block's own kind
  pool,    // plain memory from the backend `async`
  cache,   // plain memory from the backend `cache`
  fence,   // plain memory with a fence
};

// Its memory does not end with its context by itself.
constexpr bool outlives_context(Maker maker) noexcept { return maker == Maker::pool || maker == Maker::fence; }

// A CUstream as a program passed it, with the ABI it was passed through: handle 0 means the legacy stream in one and the
// thread's own stream in the other (`_ptsz`).
struct StreamArg {
  CUstream handle = nullptr;
  bool per_thread_abi = false;

  [[nodiscard]] bool is_per_thread() const noexcept { return handle == CU_STREAM_PER_THREAD || (handle == nullptr && per_thread_abi); }
  [[nodiscard]] bool is_legacy() const noexcept { return handle == CU_STREAM_LEGACY || (handle == nullptr && !per_thread_abi); }
};

class MemoryReservation;
struct GuardRecord;

// The driver's call behind a request that the stack does not know how to make: the program's own, arguments and all. It
// sets what the block is known by (an address, a handle). Refers to the callable, which must outlive it.
class DriverCall {
 public:
  template <class Call>  // CUresult(uint64_t& made)
  explicit DriverCall(Call& call) noexcept
      : run_([](void* self, uint64_t& made) noexcept { return (*static_cast<Call*>(self))(made); }), self_(&call) {}
  CUresult operator()(uint64_t& made) const noexcept { return run_(self_, made); }

 private:
  CUresult (*run_)(void* self, uint64_t& made) noexcept;
  void* self_;
};

struct AllocationRequest {
  size_t bytes = 0;  // pitch: least that the driver can take, width x height
  StreamId stream{};
  AllocTag tag{};
  const void* caller = nullptr;              // return address in the code that asked: where its stack begins
  MemoryReservation* reservation = nullptr;  // its bytes are promised already

  // What an intercepted call adds.
  Kind kind = Kind::plain;
  std::string_view api{};  // ABI name of the function that the program called
  int device = -1;         // that is charged
  CUcontext context = nullptr;
  size_t width_bytes = 0;      // pitch
  size_t height = 0;           // pitch
  unsigned element_bytes = 0;  // pitch
  size_t* pitch_out = nullptr;
  StreamArg stream_arg{};             // async, pool
  CUmemoryPool pool = nullptr;        // async: the device's current pool where it is known; pool: as passed
  uint64_t pool_number = 0;           // of the pool's incarnation, where what it has reserved is charged (pool_reserves.h)
  bool as_plain = false;              // async: to be served by cuMemAlloc
  bool fenced = false;                // plain memory, in a mapping of its own if that can be had
  const DriverCall* own = nullptr;    // kinds after `pool`: what makes the block
  const DriverCall* never = nullptr;  // the same call with a size that is never served (kNeverServed)
  bool in_use_already = false;        // graph: the driver has it, so it counts, whatever the limit

  [[nodiscard]] bool is_ordered() const noexcept { return (kind == Kind::async && !as_plain) || kind == Kind::pool; }
};

struct FreeRequest {
  const void* caller = nullptr;

  // What an intercepted call adds.
  std::string_view api{};
  const DriverCall* own = nullptr;  // what ends the block, for kinds after `pool`
  bool ordered = false;             // cuMemFreeAsync
  StreamArg stream_arg{};
};

// The handle of an allocation. Move-only, without a destructor: what is dropped without deallocate stays until its
// resource ends. A moved-from block is empty (ptr 0).
struct DeviceBlock {
  uint64_t ptr = 0;
  size_t bytes = 0;  // requested
  size_t taken = 0;  // what the driver takes for it
  size_t align = 0;  // what ptr is aligned to, at least
  Generation generation{};
  AllocTag tag{};
  CUcontext context = nullptr;
  CUmemoryPool pool = nullptr;
  uint64_t pool_number = 0;  // not 0: what its pool has reserved is charged, and not its bytes
  uint64_t stack_id = 0;
  StreamId alloc_stream{};
  int16_t device = -1;
  Kind kind = Kind::plain;
  BlockState state = BlockState::live;
  Maker maker = Maker::driver;
  size_t guard_bytes = 0;        // that the resource below made behind `bytes`
  GuardRecord* guard = nullptr;  // what the guard knows of it
  bool unlogged = false;         // left out of the log by its options
  uint32_t log_period = 1;       // in which that was decided (LoggingSink::period)
  bool shared = false;           // another process may have it mapped, or it was given attributes: not to be given out again

  DeviceBlock() noexcept = default;
  DeviceBlock(DeviceBlock&& other) noexcept { *this = static_cast<DeviceBlock&&>(other); }
  DeviceBlock& operator=(DeviceBlock&& other) noexcept {
    ptr = other.ptr;
    bytes = other.bytes;
    taken = other.taken;
    align = other.align;
    generation = other.generation;
    tag = other.tag;
    context = other.context;
    pool = other.pool;
    pool_number = other.pool_number;
    stack_id = other.stack_id;
    alloc_stream = other.alloc_stream;
    device = other.device;
    kind = other.kind;
    state = other.state;
    maker = other.maker;
    guard_bytes = other.guard_bytes;
    guard = other.guard;
    unlogged = other.unlogged;
    log_period = other.log_period;
    shared = other.shared;
    if (this != &other) {
      other.ptr = 0;
      other.generation = {};
    }
    return *this;
  }
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  ~DeviceBlock() = default;

  [[nodiscard]] BlockId id() const noexcept {
    return {.ptr = ptr, .generation = generation, .alloc_stream = alloc_stream, .device_ordinal = device};
  }
};

// A request for so much is refused by every driver, for want of memory unless something else is wrong with it: a capture that
// forbids it, another argument, a kind that the device does not have. So it asks about the rest without an effect.
inline constexpr size_t kNeverServed = size_t{1} << 60;

// What the driver's blocks are aligned to (measured, facts on the H100).
inline constexpr size_t kDriverAlign = 512;

// What cuMemAlloc takes for a request: 512 B steps up to 1 MiB, 2 MiB steps above (measured, facts on the H100). Arrays,
// by their memory requirements, and managed memory on the device are rounded alike.
size_t plain_taken(size_t bytes) noexcept;
size_t taken_by(Kind kind, size_t bytes) noexcept;

// The least that width x height bytes take when pitched; SIZE_MAX when that overflows.
size_t least_pitched(size_t width_bytes, size_t height) noexcept;

}  // namespace xlog
