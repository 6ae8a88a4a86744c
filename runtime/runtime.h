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
#include "runtime/contexts.h"
#include "runtime/device_slots.h"
#include "runtime/devices.h"
#include "runtime/driver_use.h"
#include "runtime/exported_memory.h"
#include "runtime/graph_memory.h"
#include "runtime/guard/finding.h"
#include "runtime/guard/launches.h"
#include "runtime/native_device.h"
#include "runtime/physical_memory.h"
#include "runtime/record/recorder.h"
#include "runtime/refusal/refusal_reporter.h"
#include "runtime/resource/address_table.h"
#include "runtime/resource/capture_gate.h"

namespace xlog {

class Runtime {
 public:
  // The process's runtime; nullptr only when there is no memory for it.
  static Runtime* get() noexcept;

  // Reads the options, once. False when a limit or a check could not be read: nothing may then run without it.
  bool prepare(const DriverApi& driver, FindPython find_python = nullptr, ListGpuProcesses list_processes = nullptr) noexcept;
  // Another driver is the one in use: the first was of no use, or was unloaded. No call of it is under way.
  void use_driver(const DriverApi& driver) noexcept;
  [[nodiscard]] bool is_prepared() const noexcept { return phase_.load(std::memory_order_acquire) != Phase::fresh; }
  [[nodiscard]] bool refused() const noexcept { return phase_.load(std::memory_order_acquire) == Phase::refused; }
  // Something of the stack is switched on. Only after prepare().
  [[nodiscard]] bool engaged() const noexcept { return engaged_; }
  [[nodiscard]] const Options& options() const noexcept { return options_; }
  // After the driver was initialised: what must not be done inside an allocation is done now. True the first time.
  bool begin() noexcept;
  // Then: false when a part of the budget names no GPU, so that it would limit nothing; the stack refuses from then on.
  bool check_budget_keys() noexcept;

  CUresult allocate(AllocationRequest& request, CUdeviceptr* dptr) noexcept;
  CUresult free(CUdeviceptr ptr, FreeRequest& request) noexcept;
  CUresult memory_info(size_t* free, size_t* total) noexcept;
  CUresult total_memory(size_t* bytes, CUdevice device) noexcept;
  // The limit of the current context's GPU and what is left of it; untouched without one.
  void limit_here(uint64_t& limit, uint64_t& remaining) noexcept;

  // Memory that the program's own call makes (request.kind, request.bytes), on request.device, or outside the GPUs.
  // `made` is what the block is known by. `call` is made at most twice, and not at all when a limit refuses.
  CUresult account(AllocationRequest& request, const DriverCall& call, uint64_t& made) noexcept;
  // The end of such a block, by the call that frees this kind. What is not known goes to the driver as it came.
  CUresult end_accounted(uint64_t made, Kind kind, FreeRequest& request, const DriverCall& call) noexcept;
  // Memory whose maker may hand out what it handed out before, each time to be given back: only the first is a block.
  CUresult open_import(AllocationRequest& request, const DriverCall& call, uint64_t& made) noexcept;
  CUresult close_import(uint64_t made, FreeRequest& request, const DriverCall& call) noexcept;
  // Host memory that was registered only to ask whether it can be.
  void unregister(void* address) noexcept {
    if (driver_.cuMemHostUnregister != nullptr) {
      driver_.cuMemHostUnregister(address);
    }
  }
  int current_device() noexcept { return devices_.of_current(driver_); }
  size_t range_of(CUdeviceptr ptr) noexcept;

  // Physical memory (physical_memory.h).
  CUresult create_physical(AllocationRequest& request, const DriverCall& call, uint64_t& made) noexcept;
  CUresult import_physical(AllocationRequest& request, const DriverCall& call, uint64_t& made, const void* shared,
                           CUmemAllocationHandleType type) noexcept;
  void exported(uint64_t handle, const void* shared, CUmemAllocationHandleType type) noexcept;
  CUresult release_physical(uint64_t handle, FreeRequest& request, const DriverCall& call) noexcept;
  CUresult unmap(CUdeviceptr address, size_t bytes, FreeRequest& request, const DriverCall& call) noexcept;
  void mapped(CUdeviceptr address, size_t bytes, uint64_t handle, const void* caller) noexcept;
  PhysicalMemory& physical() noexcept { return physical_; }

  // What an array of this description takes, by the driver; 0 for one that is given memory later. False: it cannot be
  // known. `levels` 0: not mipmapped.
  bool array_bytes(const CUDA_ARRAY3D_DESCRIPTOR& description, unsigned levels, size_t& bytes) noexcept;

  // Memory that graphs allocate (graph_memory.h).
  void graph_instantiated(CUgraphExec exec, CUgraph graph) noexcept;
  CUresult end_graph(CUgraphExec exec, const DriverCall& call) noexcept;
  CUresult launch_graph(CUgraphExec exec, const void* caller, std::string_view api, const DriverCall& call) noexcept;
  void graph_memory_trimmed(int ordinal, const void* caller, std::string_view api) noexcept;

  // A function that makes memory was handed out and is not on the list.
  void handed_out_unhooked(std::string_view name) noexcept;
  // What NVML says of a GPU, as cuMemGetInfo says it under a limit. False: nothing is to be changed.
  bool limited_memory(std::string_view uuid, uint64_t& free, uint64_t& total) noexcept;

  // The guard (runtime/guard). Without one every range is inside, and nothing is held.
  [[nodiscard]] bool guards() const noexcept { return engaged_ && options_.guards(); }
  // The driver would refuse a copy or a set of these bytes if there were no guard.
  bool is_past_the_end(CUdeviceptr ptr, size_t bytes) noexcept;
  // The program has freed the block that `ptr` lies in, and a backend keeps it from the driver.
  bool is_gone(CUdeviceptr ptr) noexcept;
  // The driver may know addresses, or more bytes, than the program should see.
  [[nodiscard]] bool hides_memory() const noexcept { return engaged_ && holds_back(); }
  // What the driver is to be asked about instead of `ptr`: an address that it does not know, when the program has none there.
  CUdeviceptr as_without_guard(CUdeviceptr ptr) noexcept;
  // What the driver said of a range, as the program asked for the block that is there. True where the guard made that one larger.
  bool as_asked_for(CUdeviceptr& base, size_t& bytes) noexcept;
  // What the driver said of an attribute of `ptr`, likewise.
  void fix_attribute(CUpointer_attribute attribute, void* data, CUdeviceptr ptr) noexcept;
  // The driver's answer about a pool, as without a guard. `call` is the driver's own, and is made again where another thread allocated
  // or freed meanwhile, but not for ever.
  template <class Call>
  CUresult pool_figure(CUmemoryPool pool, CUmemPool_attribute attribute, void* value, Call call) noexcept {
    bool current = attribute == CU_MEMPOOL_ATTR_USED_MEM_CURRENT;
    if (!options_.guards() || (!current && attribute != CU_MEMPOOL_ATTR_USED_MEM_HIGH)) {
      return call();
    }
    constexpr int kTries = 64;
    PoolBooks& books = guard_records_.pools();
    for (int i = 1;; ++i) {
      bool quiet = !books.is_changing();
      uint64_t changes = books.changes();
      CUresult result = call();
      if (result != CUDA_SUCCESS) {
        return result;
      }
      auto* figure = static_cast<cuuint64_t*>(value);
      uint64_t shown = current ? books.used(pool, *figure) : books.highest(pool, *figure);
      if (i == kTries || (quiet && !books.is_changing() && changes == books.changes())) {
        *figure = shown;
        return result;
      }
    }
  }
  void pool_highest_reset(CUmemoryPool pool) noexcept { guard_records_.pools().reset_highest(pool); }
  // It lies in a fenced block, which the driver holds for memory that was mapped.
  bool is_fenced(CUdeviceptr ptr) noexcept;
  void check_guarded(std::string_view found_by, bool at_exit) noexcept;
  // For the program: all zones now. How many findings there are so far.
  uint32_t check_on_request() noexcept;
  // The program launches `function`, or a graph (nullptr). `call` is the driver's own.
  template <class Call>
  CUresult launch(CUfunction function, const StreamArg& stream, Call call) noexcept {
    if (!guards()) {
      return call();
    }
    if (options_.guard_check.launches != 0) {
      prepare_launch();
    }
    each_guard([](GuardResource& guard) { guard.before_launch(); });
    CUresult result = call();
    if (result == CUDA_SUCCESS && (has_fences() || options_.guard_check.launches != 0)) {
      launched(function, stream);
    }
    return explained(result, "a launch");
  }
  // The result, after it was said once what is known when the GPU met a fence.
  CUresult explained(CUresult result, std::string_view api) noexcept {
    if (result == CUDA_ERROR_ILLEGAL_ADDRESS && engaged_ && has_fences() && said_fault_.first()) {
      explain_fault(api);
    }
    return result;
  }

  // A stream begins or ends a capture. `call` is the driver's own.
  template <class Call>
  CUresult begin_capture(const StreamArg& stream, Call call) noexcept {
    if (!needs_gate()) {
      return call();
    }
    if (stream.is_per_thread()) {
      watch_thread_end();
    }
    CUcontext context = context_of(stream);
    gate_.begin(stream, context);
    CUresult result = call();
    if (result != CUDA_SUCCESS) {
      gate_.refused(stream, context);
    }
    return result;
  }
  template <class Call>
  CUresult end_capture(const StreamArg& stream, Call call) noexcept {
    if (!needs_gate()) {
      return call();
    }
    CUcontext context = context_of(stream);
    CUresult result = call();
    if (!is_capturing(stream)) {
      gate_.ended(stream, context);
    }
    return result;
  }
  // The calling thread is about to end.
  void thread_ends() noexcept { gate_.thread_ends(); }

  // The current context was given access to the memory of `owner`.
  void peer_enabled(CUcontext owner) noexcept;
  // A block was handed to another process or given attributes.
  void shared_out(CUdeviceptr ptr) noexcept;
  // The driver refused a call on this address: says so once, with the remedy, when the backend is why.
  void not_supported(CUdeviceptr ptr, std::string_view api, CUresult result) noexcept;

  // Contexts begin (contexts.h). `call` is the driver's own; `made` is where it puts the handle.
  template <class Call>
  CUresult begin_context(CUcontext* made, Call call) noexcept {
    SharedGuard alive(contexts_.lifetime);
    CUresult result = call();
    if (result == CUDA_SUCCESS) {
      context_made(*made);
    }
    return result;
  }
  template <class Call>
  CUresult retain_primary(CUdevice device, CUcontext* primary, Call call) noexcept {
    SharedGuard alive(contexts_.lifetime);
    CUresult result = call();
    if (result == CUDA_SUCCESS && contexts_.retained(device, *primary)) {
      context_made(*primary);
    }
    return result;
  }
  template <class Call>
  CUresult attach_context(CUcontext* context, Call call) noexcept {
    SharedGuard alive(contexts_.lifetime);
    CUresult result = call();
    if (result == CUDA_SUCCESS) {
      contexts_.attached(*context);
    }
    return result;
  }
  template <class Call>
  CUresult begin_green(CUgreenCtx* green, CUdevice device, Call call) noexcept {
    SharedGuard alive(contexts_.lifetime);
    CUresult result = call();
    if (result == CUDA_SUCCESS) {
      green_made(*green, device);
    }
    return result;
  }
  template <class Call>
  CUresult name_green(CUcontext* context, CUgreenCtx green, Call call) noexcept {
    SharedGuard alive(contexts_.lifetime);
    CUresult result = call();
    if (result == CUDA_SUCCESS) {
      green_named(*context, green);
    }
    return result;
  }
  // Contexts end, and their plain blocks with them. A context that the driver refuses to end stays as it was.
  CUresult destroy_context(CUcontext context, std::string_view api, const DriverCall& call) noexcept;
  CUresult detach_context(CUcontext context, std::string_view api, const DriverCall& call) noexcept;
  CUresult reset_primary(CUdevice device, std::string_view api, const DriverCall& call) noexcept;
  // A release may or may not be the last.
  CUresult release_primary(CUdevice device, std::string_view api, const DriverCall& call) noexcept;
  CUresult destroy_green(CUgreenCtx green, std::string_view api, const DriverCall& call) noexcept;
  // The first cuCtxCreate made a context.
  void first_context_made() noexcept { first_contexts_.store(true, std::memory_order_relaxed); }
  template <class Call>
  CUresult destroy_stream(CUstream stream, Call call) noexcept {
    CUcontext context = gate_.is_capturing() ? context_of({.handle = stream}) : nullptr;
    uint32_t captures = gate_.stream_ends(stream);
    CUresult result = call();
    if (result != CUDA_SUCCESS) {
      gate_.restore(stream, context, captures);
    }
    return result;
  }
  void pool_created(CUmemoryPool pool, const CUmemPoolProps* properties) noexcept;
  // A pool is destroyed. `call` is the driver's own.
  template <class Call>
  CUresult end_pool(CUmemoryPool pool, Call call) noexcept {
    EndingPool ending = begin_pool_end(pool);
    CUresult result = call();
    finish_pool_end(pool, ending, result == CUDA_SUCCESS);
    return result;
  }

  void begin_exit() noexcept;
  [[nodiscard]] Recorder& recorder() noexcept { return recorder_; }
  // Built on first use; nullptr when the driver does not know the ordinal.
  NativeDevice* device(int ordinal) noexcept;

 private:
  // The stack that a block belongs to.
  NativeDevice* owner_of(const DeviceBlock& block) noexcept { return is_outside(block.kind) ? outside(block.kind) : device(block.device); }
  // The stack of memory that is no GPU's.
  NativeDevice* outside(Kind kind) noexcept;
  [[nodiscard]] bool is_logging() const noexcept { return options_.log.size != 0 && recorder_.period() != 0; }
  // At the beginning of each call that makes or ends memory.
  void follow_log_switch() noexcept {
    if (options_.log.size != 0 && recorder_.is_to_switch()) {
      switch_log();
    }
  }
  void switch_log() noexcept;
  bool take_up(DeviceBlock& block) noexcept;
  void keep(DeviceBlock&& block) noexcept;
  // Around the call that ends a handle of physical memory: what was exported may live on.
  void begin_handle_end(uint64_t handle) noexcept;
  void finish_handle_end(uint64_t handle, CUresult result) noexcept;
  void let_go_of_exports() noexcept;
  void make_room(NativeDevice& target, const AllocationRequest& request) noexcept;
  void record_mapping(std::string_view action, CUdeviceptr address, size_t bytes, uint64_t handle, std::string_view api,
                      const void* caller) noexcept;
  CUresult promise_graph_memory(CUgraphExec exec, GraphMemory::Promise& promise, const void* caller, std::string_view api) noexcept;
  void settle_graph_memory(int ordinal, DeviceBlock& promised, const void* caller, std::string_view api) noexcept;
  // After each request: `bytes` as given.
  void note_outcome(NativeDevice& target, const AllocationRequest& request, const Status& status, uint64_t bytes) noexcept;
  void tell_refusal(NativeDevice& target, const AllocationRequest& request, const Status& status) noexcept;
  void ask_driver(Refusal& refusal) noexcept;
  void look_at_driver_use(NativeDevice& target, bool refused) noexcept;

  // Blocks that end by one call: their rows are claimed before the driver frees the addresses.
  class BulkEnd {
   public:
    BulkEnd(Runtime& runtime, std::string_view action, std::string_view api) noexcept : runtime_(runtime), action_(action), api_(api) {}
    ~BulkEnd();
    BulkEnd(const BulkEnd&) = delete;
    BulkEnd& operator=(const BulkEnd&) = delete;
    // Blocks for which match() is true. `alive`: the driver has not ended their context yet.
    template <class Match>
    void take_if(Match match, bool alive) noexcept;
    // SUCCESS: the call was made and they are gone. Anything else: they are as they were.
    void finish(CUresult result) noexcept;

   private:
    struct Leaving {
      DeviceBlock block;
      HeldRow row;
    };
    void hold(DeviceBlock&& block, bool alive) noexcept;
    Runtime& runtime_;
    std::string_view action_;
    std::string_view api_;
    Leaving* leaving_ = nullptr;
    size_t count_ = 0;
    size_t mapped_bytes_ = 0;
  };

  // A context on its way out, with what it holds. `Contexts::lifetime` is owned while this lives.
  class ContextEnd {
   public:
    // `alive`: the driver has not ended it yet.
    ContextEnd(Runtime& runtime, CUcontext context, std::string_view api, bool alive) noexcept;
    void finish(CUresult result) noexcept;

   private:
    Runtime& runtime_;
    CUcontext context_;
    BulkEnd leaving_;
  };

  // thread_ends() is called when the calling thread ends.
  void watch_thread_end() noexcept;
  // `lifetime` is shared.
  void context_made(CUcontext context) noexcept;
  void green_made(CUgreenCtx green, CUdevice device) noexcept;
  void green_named(CUcontext context, CUgreenCtx green) noexcept;
  // `lifetime` is owned.
  CUresult end_context(CUcontext context, std::string_view api, const DriverCall& call) noexcept;
  CUresult end_primary_hold(CUdevice device, std::string_view api, const DriverCall& call) noexcept;
  // Before `lifetime` is owned: the driver's call waits for the same work, and then need not do so under the lock.
  void let_work_finish(CUcontext context) noexcept;
  [[nodiscard]] bool primary_is_active(CUdevice device) noexcept;
  [[nodiscard]] bool knows_context(CUcontext context) noexcept;
  template <class Act>
  void each_device(Act act) noexcept;
  bool locate(AllocationRequest& request) noexcept;
  // The newer plain calls are refused in contexts of the first cuCtxCreate, which a backend of ours would not do.
  bool in_first_context() noexcept { return first_contexts_.load(std::memory_order_relaxed) && devices_.current_is_first(driver_); }
  template <class Act>
  void each_source(Act act) noexcept {
    if (!has_sources()) {
      return;
    }
    devices_in_use_.each([&](NativeDevice& target) {
      if (target.source() != nullptr) {
        act(*target.source());
      }
      if (target.fence() != nullptr) {
        act(*target.fence());
      }
    });
  }
  [[nodiscard]] bool has_fences() const noexcept { return options_.guard.fence.one_in != 0; }
  [[nodiscard]] bool has_sources() const noexcept {
    return options_.backend == Backend::async || options_.backend == Backend::cache || has_fences();
  }
  // Something of ours may record an event where that could end a capture.
  [[nodiscard]] bool needs_gate() const noexcept { return holds_back() || options_.budget.count != 0; }
  // Freed memory may be kept from the driver, and contexts are waited for.
  [[nodiscard]] bool holds_back() const noexcept { return has_sources() || options_.guards(); }
  template <class Act>
  void each_guard(Act act) noexcept {
    if (!options_.guards()) {
      return;
    }
    devices_in_use_.each([&](NativeDevice& target) {
      if (target.guard() != nullptr) {
        act(*target.guard());
      }
    });
  }
  // The range that the program has at `ptr`; false when the driver knows of none.
  bool find_range(CUdeviceptr ptr, CUdeviceptr& base, size_t& bytes) noexcept;
  GuardResource* current_guard(CUcontext& context) noexcept;
  void prepare_launch() noexcept;
  void launched(CUfunction function, const StreamArg& stream) noexcept;
  void explain_fault(std::string_view api) noexcept;
  // The driver refused a free: a second one, or one of an address inside a block.
  void report_bad_free(CUdeviceptr ptr, const FreeRequest& request) noexcept;
  bool relieve() noexcept;
  CUcontext context_of(const StreamArg& stream) noexcept;
  bool is_capturing(const StreamArg& stream) noexcept;
  CUresult forward(const AllocationRequest& request, CUdeviceptr* dptr) noexcept;
  CUresult forward(CUdeviceptr ptr, const FreeRequest& request) noexcept;
  // A pointer that is no block: `asked` is what the driver is asked about.
  CUresult free_foreign(CUdeviceptr asked, CUdeviceptr ptr, const FreeRequest& request) noexcept;
  void allocate_unplaced(const AllocationRequest& request, CUresult result, uint64_t elapsed_ns) noexcept;
  void ended_unseen(DeviceBlock& block) noexcept;
  void forget_context(CUcontext context) noexcept;
  struct EndingPool {
    NativeDevice* device;
    uint64_t number;  // in its books
    uint64_t guard_number;
    int ordinal;
  };
  EndingPool begin_pool_end(CUmemoryPool pool) noexcept;
  void finish_pool_end(CUmemoryPool pool, const EndingPool& ending, bool destroyed) noexcept;
  void begin_guard_end(CUcontext context, bool alive, std::string_view api) noexcept;
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
  GuardRecords guard_records_;
  FindingReporter findings_;
  Launches launches_;
  RefusalReporter refusals_;
  ListGpuProcesses list_processes_;
  PhysicalMemory physical_;
  ExportedMemory exports_;
  GraphMemory graphs_;
  UnhookedNames unhooked_;
  Contexts contexts_;
  DeviceSlots devices_in_use_;
  std::atomic<NativeDevice*> host_;
  std::atomic<NativeDevice*> imports_;
  alignas(NativeDevice) unsigned char outside_storage_[2][sizeof(NativeDevice)];
  std::atomic<bool> begun_;
  std::atomic<bool> first_contexts_;
  std::atomic<bool> exiting_;  // no call of ours that the program did not make
  Once said_not_supported_;
  Once said_fault_;
  Once said_keys_;
  Once said_graph_;
  char folder_text_[1024];
  char program_[64];
};

}  // namespace xlog
