#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "tests/sim/driver.h"

namespace sim {

namespace {

// Driver 580.159 does not come back from the end of a thread in whose stream a free stands behind unfinished work (seen of
// threads that were made: of the first one, which ends with the process, nothing is known).
struct ThreadEnd {
  ThreadEnd() = default;
  ThreadEnd(const ThreadEnd&) = delete;
  ThreadEnd& operator=(const ThreadEnd&) = delete;
  ~ThreadEnd() {
    auto thread = static_cast<unsigned>(syscall(SYS_gettid));
    std::lock_guard guard(Driver::get().lock);
    for (Context* context : Driver::get().contexts) {
      auto mine = context->per_thread.find(thread);
      bool behind_work = false;
      for (size_t i = 0; mine != context->per_thread.end() && i < mine->second->queue.size(); ++i) {
        Operation::Sort sort = mine->second->queue[i].sort;
        behind_work = behind_work || sort == Operation::Sort::work;
        if (behind_work && sort == Operation::Sort::free && thread != static_cast<unsigned>(getpid())) {
          std::fprintf(stderr, "simulated driver: a thread ends with a free behind work in its own stream: a real one hangs\n");
          std::abort();
        }
      }
      if (mine != context->per_thread.end() && mine->second->capture != nullptr) {
        end_capture(std::shared_ptr<Capture>(mine->second->capture));  // a capture of the thread's own stream ends with the thread
      }
    }
  }
};

}  // namespace

void watch_thread_end() { static thread_local ThreadEnd watched; }

std::vector<Stream*> all_streams(Context& context) {
  std::vector<Stream*> all;
  if (context.legacy != nullptr) {  // a context that has ended has none
    all.push_back(context.legacy.get());
  }
  for (auto& [tid, stream] : context.per_thread) {
    all.push_back(stream.get());
  }
  all.insert(all.end(), context.streams.begin(), context.streams.end());
  return all;
}

std::vector<uint64_t> all_work(Context& context) {
  std::vector<uint64_t> numbers;
  for (Stream* stream : all_streams(context)) {
    if (!stream->queue.empty()) {
      numbers.push_back(stream->queue.back().number);
    }
  }
  return numbers;
}

bool is_idle(Context& context) {
  for (Stream* stream : all_streams(context)) {
    if (!is_idle(*stream)) {
      return false;
    }
  }
  return true;
}

namespace {

bool step(Stream& stream) {
  Driver& driver = Driver::get();
  if (stream.queue.empty()) {
    return false;
  }
  for (uint64_t number : stream.queue.front().after) {
    if (driver.unfinished.count(number) != 0) {
      return false;
    }
  }
  if (!stream.queue.front().run()) {
    return false;
  }
  driver.unfinished.erase(stream.queue.front().number);
  stream.queue.pop_front();
  return true;
}

bool step_all() {
  bool any = false;
  for (Context* context : Driver::get().contexts) {
    for (Stream* stream : all_streams(*context)) {
      any = step(*stream) || any;
    }
  }
  return any;
}

}  // namespace

void enqueue(Stream& stream, std::function<bool()> run, Operation::Sort sort) {
  Driver& driver = Driver::get();
  if (stream.capture != nullptr) {
    add_captured(*stream.capture, {});
    return;
  }
  Operation operation{driver.next_operation++, {}, std::move(run), sort};
  Context& context = *stream.context;
  // The legacy stream waits for all blocking streams, and they for it.
  bool legacy = &stream == context.legacy.get();
  for (Stream* other : all_streams(context)) {
    bool tied = other != &stream && ((legacy && other->blocking) || (stream.blocking && other == context.legacy.get()));
    if (tied && !other->queue.empty()) {
      operation.after.push_back(other->queue.back().number);
    }
  }
  driver.unfinished.insert(operation.number);
  stream.queue.push_back(std::move(operation));
}

void make_progress() {
  Driver& driver = Driver::get();
  for (Context* context : driver.contexts) {
    for (Stream* stream : all_streams(*context)) {
      // With a seed of its own, a run has fast streams and slow ones.
      constexpr unsigned kPaces[] = {1, 4, 16, 64};
      unsigned pace = driver.pace_seed == 0 ? 4 : kPaces[(stream->id * 0x9E3779B9U ^ driver.pace_seed * 0x85EBCA6BU) >> 13 & 3];
      if (!stream->queue.empty() && driver.random() % pace == 0) {
        step(*stream);
      }
    }
  }
}

bool is_idle(const Stream& stream) { return stream.queue.empty(); }

bool is_done(const Event& event) {
  for (uint64_t number : event.all) {
    if (Driver::get().unfinished.count(number) != 0) {
      return false;
    }
  }
  return true;
}

void wait_until(const std::function<bool()>& done, std::mutex& lock) {
  while (!done()) {
    if (!step_all()) {
      lock.unlock();
      sched_yield();
      lock.lock();
    }
  }
}

}  // namespace sim

using namespace sim;

namespace {

CUresult make_stream(const char* name, CUstream* out, unsigned flags) {
  Call call(name, Call::Needs::context);
  if (call.failed() || out == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  Driver& driver = Driver::get();
  auto* stream = make(Kind::stream, Stream{call.context(), (flags & CU_STREAM_NON_BLOCKING) == 0, driver.next_stream_id++, {}, {}});
  driver.streams.insert(stream);
  call.context()->streams.insert(stream);
  *out = reinterpret_cast<CUstream>(stream);
  return CUDA_SUCCESS;
}

CUresult destroy_stream(const char* name, CUstream handle) {
  Call call(name, Call::Needs::init);
  auto* stream = reinterpret_cast<Stream*>(handle);
  Driver& driver = Driver::get();
  if (call.failed() || !is_known(stream)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_HANDLE;
  }
  call.is_on(*stream);
  while (!stream->queue.empty()) {  // its work is still done
    Operation operation = std::move(stream->queue.front());
    stream->queue.pop_front();
    operation.run();
    driver.unfinished.erase(operation.number);
  }
  if (stream->capture != nullptr) {
    end_capture(std::shared_ptr<Capture>(stream->capture));
  }
  driver.streams.erase(stream);
  stream->context->streams.erase(stream);
  end(Kind::stream, stream);
  return CUDA_SUCCESS;
}

// What every call on a stream begins with.
#define SIM_STREAM(name, per_thread) SIM_STREAM_BESIDE(name, per_thread, safe)
#define SIM_STREAM_BESIDE(name, per_thread, beside)                               \
  Call call(name, Call::Needs::stream, per_thread, Call::Beside::beside, handle); \
  Stream* stream = call.failed() ? nullptr : call.stream(handle);                 \
  if (stream == nullptr) {                                                        \
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_HANDLE;             \
  }

// Asking for the end of what only builds a graph loses it.
bool lost_capture(Stream& stream) {
  if (stream.capture != nullptr) {
    stream.capture->invalidated = true;
  }
  return stream.capture != nullptr;
}

CUresult query(const char* name, CUstream handle, bool per_thread) {
  SIM_STREAM_BESIDE(name, per_thread, unsafe)
  if (lost_capture(*stream)) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return is_idle(*stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

CUresult synchronize(const char* name, CUstream handle, bool per_thread) {
  SIM_STREAM_BESIDE(name, per_thread, unsafe)
  if (lost_capture(*stream)) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  wait_until([stream] { return is_idle(*stream); }, Driver::get().lock);
  release_idle_pools();
  return stream->context->fault;
}

CUresult is_capturing(const char* name, CUstream handle, CUstreamCaptureStatus* status, bool per_thread) {
  SIM_STREAM(name, per_thread)
  *status = stream->capture == nullptr     ? CU_STREAM_CAPTURE_STATUS_NONE
            : stream->capture->invalidated ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                           : CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return CUDA_SUCCESS;
}

CUresult get_id(const char* name, CUstream handle, unsigned long long* id, bool per_thread) {
  SIM_STREAM(name, per_thread)
  *id = stream->id;
  return CUDA_SUCCESS;
}

CUresult get_context(const char* name, CUstream handle, CUcontext* out, bool per_thread) {
  SIM_STREAM(name, per_thread)
  *out = reinterpret_cast<CUcontext>(stream->context);
  return CUDA_SUCCESS;
}

CUresult record(const char* name, CUevent handle_event, CUstream handle, bool per_thread) {
  SIM_STREAM(name, per_thread)
  auto* event = reinterpret_cast<Event*>(handle_event);
  if (!is_known(event)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  event->captured = stream->capture;
  if (stream->capture != nullptr) {
    return CUDA_SUCCESS;
  }
  enqueue(
      *stream, [] { return true; }, Operation::Sort::order);
  event->all = {stream->queue.back().number};
  return CUDA_SUCCESS;
}

CUresult wait_event(const char* name, CUstream handle, CUevent handle_event, bool per_thread) {
  SIM_STREAM(name, per_thread)
  auto* event = reinterpret_cast<Event*>(handle_event);
  if (!is_known(event)) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  std::shared_ptr<Capture> joined = event->captured.lock();
  if (joined != nullptr) {
    joined->streams.insert(stream);
    stream->capture = joined;
    return CUDA_SUCCESS;
  }
  if (stream->capture != nullptr) {
    stream->capture->invalidated = true;
    return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
  }
  std::vector<uint64_t> after = event->all;
  enqueue(
      *stream, [] { return true; }, Operation::Sort::order);
  auto& operation = stream->queue.back();
  operation.after.insert(operation.after.end(), after.begin(), after.end());
  return CUDA_SUCCESS;
}

CUresult wait_value(const char* name, CUstream handle, CUdeviceptr address, cuuint32_t value, bool per_thread) {
  SIM_STREAM(name, per_thread)
  Block* block = find_block(address);
  if (block != nullptr && block->pool != nullptr) {
    return CUDA_ERROR_INVALID_VALUE;  // measured: memory from a pool is refused
  }
  enqueue(*stream, [address, value] { return __atomic_load_n(reinterpret_cast<uint32_t*>(address), __ATOMIC_ACQUIRE) >= value; });
  return CUDA_SUCCESS;
}

}  // namespace

SIM_EXPORT CUresult cuStreamCreate(CUstream* out, unsigned flags) { return make_stream("cuStreamCreate", out, flags); }
SIM_EXPORT CUresult cuStreamCreateWithPriority(CUstream* out, unsigned flags, int) {
  return make_stream("cuStreamCreateWithPriority", out, flags);
}
SIM_EXPORT CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  Call call("cuCtxGetStreamPriorityRange", Call::Needs::context);
  if (!call.failed()) {
    *least = 0;
    *greatest = -5;
  }
  return call.result();
}
SIM_EXPORT CUresult cuStreamDestroy(CUstream s) { return destroy_stream("cuStreamDestroy", s); }
SIM_EXPORT CUresult cuStreamDestroy_v2(CUstream s) { return destroy_stream("cuStreamDestroy_v2", s); }

#define SIM_TWINS(name, params, body, ...)                                    \
  SIM_EXPORT CUresult name params { return body(#name, __VA_ARGS__, false); } \
  SIM_EXPORT CUresult name##_ptsz params { return body(#name "_ptsz", __VA_ARGS__, true); }
SIM_TWINS(cuStreamQuery, (CUstream s), query, s)
SIM_TWINS(cuStreamSynchronize, (CUstream s), synchronize, s)
SIM_TWINS(cuStreamIsCapturing, (CUstream s, CUstreamCaptureStatus* status), is_capturing, s, status)
SIM_TWINS(cuStreamGetId, (CUstream s, unsigned long long* id), get_id, s, id)
SIM_TWINS(cuStreamGetCtx, (CUstream s, CUcontext* out), get_context, s, out)
SIM_TWINS(cuEventRecord, (CUevent e, CUstream s), record, e, s)
SIM_TWINS(cuStreamWaitEvent, (CUstream s, CUevent e, unsigned), wait_event, s, e)
SIM_TWINS(cuStreamWaitValue32_v2, (CUstream s, CUdeviceptr p, cuuint32_t v, unsigned), wait_value, s, p, v)

SIM_EXPORT CUresult cuEventCreate(CUevent* out, unsigned) {
  Call call("cuEventCreate", Call::Needs::context);
  if (call.failed()) {
    return call.result();
  }
  auto* event = make(Kind::event, Event{call.context(), {}, {}});
  Driver::get().events.insert(event);
  *out = reinterpret_cast<CUevent>(event);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuEventDestroy_v2(CUevent handle) {
  Call call("cuEventDestroy_v2", Call::Needs::init);
  auto* event = reinterpret_cast<Event*>(handle);
  if (call.failed() || !is_known(event)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_HANDLE;
  }
  Driver::get().events.erase(event);
  end(Kind::event, event);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuEventQuery(CUevent handle) {
  Call call("cuEventQuery", Call::Needs::init, false, Call::Beside::unsafe);
  auto* event = reinterpret_cast<Event*>(handle);
  if (call.failed() || !is_known(event)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_HANDLE;
  }
  bool done = is_done(*event);
  return event->context->fault != CUDA_SUCCESS ? event->context->fault : done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

SIM_EXPORT CUresult cuEventSynchronize(CUevent handle) {
  Call call("cuEventSynchronize", Call::Needs::init, false, Call::Beside::unsafe);
  auto* event = reinterpret_cast<Event*>(handle);
  if (call.failed() || !is_known(event)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_HANDLE;
  }
  wait_until([event] { return is_done(*event); }, Driver::get().lock);
  release_idle_pools();
  return event->context->fault;
}

// An event over everything that the context has now, on its non-blocking streams too. Nothing is put into a stream.
SIM_EXPORT CUresult cuCtxRecordEvent(CUcontext handle, CUevent handle_event) {
  Call call("cuCtxRecordEvent", Call::Needs::init);
  auto* context = reinterpret_cast<Context*>(handle);
  auto* event = reinterpret_cast<Event*>(handle_event);
  if (call.failed() || !is_known(context)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_CONTEXT;
  }
  if (!is_known(event) || event->context != context) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  CUresult refused = context_wide_call(*context);
  if (refused == CUDA_SUCCESS) {
    event->captured.reset();
    event->all = all_work(*context);
  }
  return refused;
}

SIM_EXPORT CUresult cuStreamGetDevice(CUstream handle, CUdevice* device) {
  Call call("cuStreamGetDevice", Call::Needs::stream, false, Call::Beside::safe, handle);
  Stream* stream = call.failed() ? nullptr : call.stream(handle);
  if (stream == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_HANDLE;
  }
  *device = stream->context->device->ordinal;
  return CUDA_SUCCESS;
}
