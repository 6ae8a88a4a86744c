#include "tests/sim/driver.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace sim {

namespace {

// Of the calls that make and end memory: the library makes others of its own.
void note_call(const char* name) {
  if (std::strncmp(name, "cuMemAlloc", 10) == 0 || std::strncmp(name, "cuMemFree", 9) == 0) {
    Driver::get().last_call = name;
  }
}

}  // namespace

Driver& Driver::get() {
  static Driver* driver = new Driver;  // never destroyed: programs free memory in their static destructors
  return *driver;
}

bool is_known(const Context* context) {
  must_not_have_ended(Kind::context, context);
  return Driver::get().contexts.count(const_cast<Context*>(context)) != 0;
}
bool is_known(const Stream* stream) {
  must_not_have_ended(Kind::stream, stream);
  return Driver::get().streams.count(const_cast<Stream*>(stream)) != 0;
}
bool is_known(const Event* event) {
  must_not_have_ended(Kind::event, event);
  return Driver::get().events.count(const_cast<Event*>(event)) != 0;
}
bool is_known(const Pool* pool) {
  must_not_have_ended(Kind::pool, pool);
  return Driver::get().pools.count(const_cast<Pool*>(pool)) != 0;
}

bool Current::is_alive() const { return Driver::get().contexts.count(context) != 0 && context->life == life; }

std::vector<Current>& current_stack() {
  static thread_local auto* stack = new std::vector<Current>;  // outlives the program's static destructors
  return *stack;
}

namespace {
void (*before_call)(const char*) = nullptr;

// What a test wants to happen at this instant of a call of the library.
std::mutex& announced(const char* name) {
  static thread_local bool inside = false;
  if (before_call != nullptr && !inside) {
    inside = true;
    before_call(name);
    inside = false;
  }
  lose_turn();
  return Driver::get().lock;
}
}  // namespace

Call::Call(const char* name, Needs needs, bool per_thread, Beside beside, CUstream handle)
    : name_(name), guard_(announced(name)), per_thread_(per_thread) {
  begin_hostile_call(name);
  Driver& driver = Driver::get();
  note_call(name);
  result_ = injected_fault(name);
  if (failed()) {
    return;
  }
  if (needs != Needs::nothing) {
    if (!driver.initialised || driver.pid != getpid()) {
      result_ = CUDA_ERROR_NOT_INITIALIZED;  // a fork child too
      return;
    }
    if (driver.shut_down) {
      result_ = CUDA_ERROR_DEINITIALIZED;
      return;
    }
  }
  if (beside == Beside::unsafe) {
    result_ = unsafe_call();
  }
  if (failed() || needs == Needs::nothing) {
    return;
  }
  make_progress();
  auto* named = reinterpret_cast<Stream*>(handle);
  if (needs == Needs::stream && named != nullptr && handle != CU_STREAM_LEGACY && handle != CU_STREAM_PER_THREAD && is_known(named)) {
    context_ = named->context;
  } else if (needs == Needs::context || needs == Needs::stream) {
    context_ = current_stack().empty() ? nullptr : current_stack().back().context;
    if (context_ == nullptr) {
      result_ = CUDA_ERROR_INVALID_CONTEXT;
    } else if (!current_stack().back().is_alive()) {
      result_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
      context_ = nullptr;
    } else if (context_->of != nullptr && driver.contexts.count(context_->of) == 0) {
      result_ = CUDA_ERROR_CONTEXT_IS_DESTROYED;
      context_ = nullptr;
    } else if (context_->of != nullptr) {
      context_ = context_->of;
    } else if (context_->fault != CUDA_SUCCESS && std::strncmp(name, "cuCtx", 5) != 0) {
      result_ = context_->fault;
    }
  }
}

Stream* Call::stream(CUstream handle) const {
  bool own = handle == CU_STREAM_PER_THREAD || (handle == nullptr && per_thread_);
  bool legacy = handle == CU_STREAM_LEGACY || (handle == nullptr && !per_thread_);
  Driver& driver = Driver::get();
  if (legacy) {
    return context_ != nullptr ? context_->legacy.get() : nullptr;
  }
  if (own) {
    if (context_ == nullptr) {
      return nullptr;
    }
    watch_thread_end();
    auto& mine = context_->per_thread[static_cast<unsigned>(syscall(SYS_gettid))];
    if (!mine) {
      mine = std::make_unique<Stream>(Stream{context_, true, driver.next_stream_id++, {}, {}});
    }
    is_on(*mine);
    return mine.get();
  }
  auto* stream = reinterpret_cast<Stream*>(handle);
  if (!is_known(stream)) {
    return nullptr;
  }
  is_on(*stream);
  return stream;
}

// The mark is kept behind the lock for as long as the thread then loses its turn.
Call::~Call() {
  if (is_hostile()) {
    guard_.unlock();
    lose_turn();
    for (uint64_t each : on_) {
      leave_stream(each);
    }
  }
}

void Call::is_on(const Stream& stream) const {
  if (is_hostile()) {
    enter_stream(stream.id, name_);
    on_.push_back(stream.id);
  }
}

}  // namespace sim

using namespace sim;

// For tests: the ABI name of the last driver function that made or ended memory.
SIM_EXPORT const char* xlog_sim_last_call() {
  static thread_local std::string copy;
  std::lock_guard guard(Driver::get().lock);
  copy = Driver::get().last_call;
  return copy.c_str();
}

// For tests: bytes of a device that are in use, by whomever.
SIM_EXPORT size_t xlog_sim_used(int device) {
  std::lock_guard guard(Driver::get().lock);
  return Driver::get().devices.at(static_cast<size_t>(device))->used;
}

// The same by the number before CUDA_VISIBLE_DEVICES; 0 for a GPU that this process does not see.
SIM_EXPORT size_t xlog_sim_used_physical(int physical) {
  std::lock_guard guard(Driver::get().lock);
  for (const auto& device : Driver::get().devices) {
    if (device->physical == physical) {
      return device->used;
    }
  }
  return 0;
}

// For tests: another schedule from now on, in which each stream has a pace of its own.
SIM_EXPORT void xlog_sim_seed(unsigned seed) {
  std::lock_guard guard(Driver::get().lock);
  Driver::get().random.seed(seed);
  Driver::get().pace_seed = seed;
}

// For tests: called before each driver call, outside the driver's lock; nullptr ends it.
SIM_EXPORT void xlog_sim_before_calls(void (*call)(const char* name)) { before_call = call; }

SIM_EXPORT CUresult cuDriverGetVersion(int* version) {
  Call call("cuDriverGetVersion", Call::Needs::nothing);
  if (call.failed() || version == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  *version = 13000;
  return CUDA_SUCCESS;
}

namespace {
CUresult error_text(const char* name, CUresult error, const char** text) {
  Call call(name, Call::Needs::nothing);
  if (!call.failed()) {
    *text = error == CUDA_SUCCESS ? "CUDA_SUCCESS" : error == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR";
  }
  return call.result();
}
}  // namespace
SIM_EXPORT CUresult cuGetErrorName(CUresult error, const char** text) { return error_text("cuGetErrorName", error, text); }
SIM_EXPORT CUresult cuGetErrorString(CUresult error, const char** text) { return error_text("cuGetErrorString", error, text); }

SIM_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  Call call("cuThreadExchangeStreamCaptureMode", Call::Needs::init);
  if (!call.failed()) {
    std::swap(capture_mode(), *mode);
  }
  return call.result();
}
