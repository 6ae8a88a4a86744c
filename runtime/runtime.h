// The one door to the stack, for the shim: pointer in, CUresult out. Everything that a call needs (device, block,
// resource) is found here; every answer is the one that the program would have had. Thread-safe; never throws.
//
// All state lives in memory that the kernel wipes in a fork child: the child begins anew, with a log and ledgers of its
// own, when it first does something. Nothing is torn down at exit.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/diagnostics.h"
#include "runtime/base/driver_api.h"
#include "runtime/base/options.h"
#include "runtime/devices.h"
#include "runtime/native_device.h"
#include "runtime/record/recorder.h"
#include "runtime/resource/address_table.h"
#include "runtime/resource/capture_gate.h"

namespace xlog {

class Runtime {
 public:
  // The process's runtime; nullptr only when there is no memory for it.
  static Runtime* get() noexcept;

  // Reads the options, once. False when a limit or a check could not be read: nothing may then run without it.
  bool prepare(const DriverApi& driver) noexcept;
  [[nodiscard]] bool is_prepared() const noexcept { return phase_.load(std::memory_order_acquire) != Phase::fresh; }
  [[nodiscard]] bool refused() const noexcept { return phase_.load(std::memory_order_acquire) == Phase::refused; }
  // Something of the stack is switched on. Only after prepare().
  [[nodiscard]] bool engaged() const noexcept { return engaged_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  // After the driver was initialised: what must not be done inside an allocation is done now. True the first time.
  bool begin() noexcept;

  CUresult allocate(AllocationRequest& request, CUdeviceptr* dptr) noexcept;
  CUresult free(CUdeviceptr ptr, FreeRequest& request) noexcept;
  CUresult memory_info(size_t* free, size_t* total) noexcept;
  CUresult total_memory(size_t* bytes, CUdevice device) noexcept;

  // The driver's call, and once more when it is out of memory while a backend holds some that is not in use.
  template <class Call>
  CUresult retry(Call call) noexcept {
    CUresult result = call();
    return result == CUDA_ERROR_OUT_OF_MEMORY && relieve() ? call() : result;
  }

  // A stream begins or ends a capture. `call` is the driver's own.
  template <class Call>
  CUresult begin_capture(const StreamArg& stream, Call call) noexcept {
    if (!has_sources()) {
      return call();
    }
    gate_.begin(stream, context_of(stream));
    CUresult result = call();
    if (result != CUDA_SUCCESS) {
      gate_.refused(stream);
    }
    return result;
  }
  template <class Call>
  CUresult end_capture(const StreamArg& stream, Call call) noexcept {
    CUresult result = call();
    if (has_sources() && !is_capturing(stream)) {
      gate_.ended(stream);
    }
    return result;
  }

  // The current context was given access to the memory of `owner`.
  void peer_enabled(CUcontext owner) noexcept;
  void green_context_made(CUcontext context) noexcept;
  // A block was handed to another process or given attributes.
  void shared_out(CUdeviceptr ptr) noexcept;
  // The driver refused a call on this address: says so once, with the remedy, when the backend is why.
  void not_supported(CUdeviceptr ptr, std::string_view api, CUresult result) noexcept;

  // A context ends: its plain blocks go with it. `call` is the driver's own.
  template <class Call>
  CUresult end_context(CUcontext context, std::string_view api, Call call) noexcept {
    ContextEnd end(*this, context, api, true);
    CUresult result = call();
    end.finish(result);
    return result;
  }
  // The same for a release that may or may not have been the last.
  void primary_released(CUdevice device, std::string_view api) noexcept;
  void primary_retained(CUdevice device, CUcontext context) noexcept { devices_.primary_retained(device, context); }
  CUcontext primary(CUdevice device) noexcept { return devices_.primary(device); }
  // The driver refuses to destroy such a context: it ends by a release or a reset.
  bool is_primary(CUcontext context) noexcept { return devices_.is_primary(context); }
  void stream_destroyed(CUstream stream) noexcept;
  void pool_created(CUmemoryPool pool, const CUmemPoolProps* properties) noexcept;
  void pool_destroyed(CUmemoryPool pool) noexcept;

  void begin_exit() noexcept;
  [[nodiscard]] Recorder& recorder() noexcept { return recorder_; }
  // Built on first use; nullptr above kMaxDevices or when the driver does not know the ordinal.
  NativeDevice* device(int ordinal) noexcept;

 private:
  // Blocks of a context on their way out: their rows are claimed before the driver frees the addresses.
  class ContextEnd {
   public:
    // `alive`: the driver has not ended it yet.
    ContextEnd(Runtime& runtime, CUcontext context, std::string_view api, bool alive) noexcept;
    void finish(CUresult result) noexcept;

   private:
    struct Leaving {
      DeviceBlock block;
      HeldRow row;
    };
    void hold_blocks(bool alive) noexcept;
    Runtime& runtime_;
    CUcontext context_;
    std::string_view api_;
    Leaving* leaving_ = nullptr;
    size_t count_ = 0;
    size_t mapped_bytes_ = 0;
  };

  template <class Act>
  void each_device(Act act) noexcept;
  bool locate(AllocationRequest& request) noexcept;
  template <class Act>
  void each_source(Act act) noexcept {
    for (auto& each : built_) {
      NativeDevice* target = has_sources() ? each.load(std::memory_order_acquire) : nullptr;
      if (target != nullptr && target->source() != nullptr) {
        act(*target->source());
      }
    }
  }
  [[nodiscard]] bool has_sources() const noexcept { return options_.backend == Backend::async || options_.backend == Backend::cache; }
  bool relieve() noexcept;
  CUcontext context_of(const StreamArg& stream) noexcept;
  bool is_capturing(const StreamArg& stream) noexcept;
  void identify_stream(const StreamArg& stream, uint64_t& id) noexcept;
  CUresult forward(const AllocationRequest& request, CUdeviceptr* dptr) noexcept;
  CUresult forward(CUdeviceptr ptr, const FreeRequest& request) noexcept;
  // A pointer that is no block: `asked` is what the driver is asked about.
  CUresult free_foreign(CUdeviceptr asked, CUdeviceptr ptr, const FreeRequest& request) noexcept;
  void allocate_unplaced(const AllocationRequest& request, CUresult result, uint64_t elapsed_ns) noexcept;
  void ended_unseen(const DeviceBlock& block) noexcept;
  void forget_context(CUcontext context) noexcept;
  static void write_run_info(TextSink& out, const void* runtime) noexcept;

  enum class Phase : uint8_t { fresh, ready, refused };

  std::atomic<Phase> phase_;
  bool engaged_;
  Lock lock_;
  DriverApi driver_;
  Options options_;
  Devices devices_;
  BlockRegistry registry_;
  CaptureGate gate_;
  Recorder recorder_;
  std::atomic<NativeDevice*> built_[kMaxDevices];
  alignas(NativeDevice) unsigned char storage_[kMaxDevices][sizeof(NativeDevice)];
  std::atomic<bool> begun_;
  Once beyond_;
  Once said_not_supported_;
  char folder_text_[1024];
  char program_[64];
};

}  // namespace xlog
