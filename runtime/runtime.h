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

  // A context ends: its plain blocks go with it. `call` is the driver's own.
  template <class Call>
  CUresult end_context(CUcontext context, std::string_view api, Call call) noexcept {
    ContextEnd end(*this, context, api);
    CUresult result = call();
    end.finish(result);
    return result;
  }
  // The same for a release that may or may not have been the last.
  void primary_released(CUdevice device, std::string_view api) noexcept;
  void primary_retained(CUdevice device, CUcontext context) noexcept { devices_.primary_retained(device, context); }
  CUcontext primary(CUdevice device) noexcept { return devices_.primary(device); }
  void stream_destroyed(CUstream stream) noexcept;
  void pool_created(CUmemoryPool pool, const CUmemPoolProps* properties) noexcept;
  void pool_destroyed(CUmemoryPool pool) noexcept;

  void begin_exit() noexcept { recorder_.begin_exit(); }
  [[nodiscard]] Recorder& recorder() noexcept { return recorder_; }
  // Built on first use; nullptr above kMaxDevices or when the driver does not know the ordinal.
  NativeDevice* device(int ordinal) noexcept;

 private:
  // Blocks of a context on their way out: their rows are claimed before the driver frees the addresses.
  class ContextEnd {
   public:
    ContextEnd(Runtime& runtime, CUcontext context, std::string_view api) noexcept;
    void finish(CUresult result) noexcept;

   private:
    struct Leaving {
      DeviceBlock block;
      HeldRow row;
    };
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
  bool is_capturing(const StreamArg& stream) noexcept;
  void identify_stream(const StreamArg& stream, uint64_t& id) noexcept;
  CUresult forward(const AllocationRequest& request, CUdeviceptr* dptr) noexcept;
  CUresult forward(CUdeviceptr ptr, const FreeRequest& request) noexcept;
  CUresult free_foreign(CUdeviceptr ptr, const FreeRequest& request) noexcept;
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
  Recorder recorder_;
  std::atomic<NativeDevice*> built_[kMaxDevices];
  alignas(NativeDevice) unsigned char storage_[kMaxDevices][sizeof(NativeDevice)];
  std::atomic<bool> begun_;
  Once beyond_;
  char folder_text_[1024];
  char program_[64];
};

}  // namespace xlog
