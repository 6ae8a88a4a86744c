#include <algorithm>

#include "tests/sim/driver.h"

namespace sim {

namespace {

Device* device_at(CUdevice ordinal) {
  Driver& driver = Driver::get();
  bool known = ordinal >= 0 && static_cast<size_t>(ordinal) < driver.devices.size();
  return known ? driver.devices[static_cast<size_t>(ordinal)].get() : nullptr;
}

}  // namespace

Context* make_context(Device& device, bool primary) {
  Driver& driver = Driver::get();
  auto* context = make(Kind::context, Context{&device, primary, nullptr, {}, {}});
  context->life = driver.next_serial++;
  context->legacy = std::make_unique<Stream>(Stream{context, true, driver.next_stream_id++, {}, {}});
  driver.contexts.insert(context);
  return context;
}

Context* retain_primary(Device& device) {
  if (device.primary == nullptr) {
    device.primary = make_context(device, true);
  } else if (Driver::get().contexts.count(device.primary) == 0) {
    Context* same = device.primary;  // the primary context keeps its handle through a reset
    same->legacy = std::make_unique<Stream>(Stream{same, true, Driver::get().next_stream_id++, {}, {}});
    Driver::get().contexts.insert(same);
  }
  ++device.primary_count;
  return device.primary;
}

void finish_work(Context* context) {
  auto& all = Driver::get().contexts;
  wait_until([&] { return all.count(context) == 0 || is_idle(*context); }, Driver::get().lock);
}

void release_primary(Device& device) {
  if (device.primary_count == 1) {
    finish_work(device.primary);
  }
  if (--device.primary_count == 0 && Driver::get().contexts.count(device.primary) != 0) {
    end_context(*device.primary);
  }
}

// The context's plain blocks go with it; pool memory does not. Handles are given out again: a set of the dead would
// otherwise hide a use of a recycled one.
void end_context(Context& context) {
  Driver& driver = Driver::get();
  for (auto captures = driver.captures; const auto& each : captures) {
    if (each->origin->context == &context) {
      end_capture(each);
    }
  }
  auto drain = [&](Stream& stream) {
    while (!stream.queue.empty()) {
      Operation operation = std::move(stream.queue.front());
      stream.queue.pop_front();
      operation.run();
      driver.unfinished.erase(operation.number);
    }
  };
  drain(*context.legacy);
  for (auto& [tid, stream] : context.per_thread) {
    drain(*stream);
  }
  for (Stream* stream : context.streams) {
    drain(*stream);
    driver.streams.erase(stream);
    end(Kind::stream, stream);
  }
  std::vector<Block> own;
  for (auto& [ptr, block] : driver.blocks) {
    if (block.context == &context) {
      own.push_back(block);
    }
  }
  for (const Block& block : own) {
    release_plain(block);
    end_life(block.serial);
    driver.blocks.erase(block.ptr);
  }
  for (auto it = driver.events.begin(); it != driver.events.end();) {
    Event* event = *it;
    bool its = event->context == &context;
    it = its ? driver.events.erase(it) : std::next(it);
    if (its) {
      end(Kind::event, event);
    }
  }
  end_host_memory(context);
  std::erase_if(driver.peers, [&](const auto& each) { return each.first == &context || each.second == &context; });
  driver.contexts.erase(&context);
  if (std::none_of(driver.contexts.begin(), driver.contexts.end(), [&](Context* each) { return each->device == context.device; })) {
    release_empty_chunks(*context.device);
  }
  context.streams.clear();
  context.per_thread.clear();
  context.legacy.reset();
}

}  // namespace sim

using namespace sim;

SIM_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice ordinal) {
  Call call("cuDevicePrimaryCtxRetain", Call::Needs::init);
  Device* device = call.failed() ? nullptr : device_at(ordinal);
  if (device == nullptr || out == nullptr) {
    return call.failed() ? call.result() : device == nullptr ? CUDA_ERROR_INVALID_DEVICE : CUDA_ERROR_INVALID_VALUE;
  }
  *out = reinterpret_cast<CUcontext>(retain_primary(*device));
  return CUDA_SUCCESS;
}

namespace {

CUresult release_primary(const char* name, CUdevice ordinal) {
  Call call(name, Call::Needs::init);
  Device* device = call.failed() ? nullptr : device_at(ordinal);
  if (device == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_DEVICE;
  }
  if (device->primary_count == 0) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  release_primary(*device);
  return CUDA_SUCCESS;
}

CUresult reset_primary(const char* name, CUdevice ordinal) {
  Call call(name, Call::Needs::init);
  Device* device = call.failed() ? nullptr : device_at(ordinal);
  if (device == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_DEVICE;
  }
  finish_work(device->primary);
  if (device->primary != nullptr && Driver::get().contexts.count(device->primary) != 0) {
    end_context(*device->primary);
  }
  return CUDA_SUCCESS;  // the retains still stand: a reset does not release
}

CUresult destroy_context(const char* name, CUcontext handle) {
  Call call(name, Call::Needs::init);
  auto* context = reinterpret_cast<Context*>(handle);
  if (call.failed() || !is_known(context) || context->primary || context->of != nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_CONTEXT;
  }
  finish_work(context);
  if (Driver::get().contexts.count(context) == 0) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  auto& stack = current_stack();
  if (!stack.empty() && stack.back().context == context && stack.back().is_alive()) {
    stack.pop_back();
  }
  end_context(*context);
  if (is_hostile()) {
    end(Kind::context, context);  // otherwise its handle never comes back
  }
  return CUDA_SUCCESS;
}

}  // namespace

SIM_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice d) { return release_primary("cuDevicePrimaryCtxRelease", d); }
SIM_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) { return release_primary("cuDevicePrimaryCtxRelease_v2", d); }
SIM_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice d) { return reset_primary("cuDevicePrimaryCtxReset", d); }
SIM_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice d) { return reset_primary("cuDevicePrimaryCtxReset_v2", d); }
SIM_EXPORT CUresult cuCtxDestroy(CUcontext c) { return destroy_context("cuCtxDestroy", c); }
SIM_EXPORT CUresult cuCtxDestroy_v2(CUcontext c) { return destroy_context("cuCtxDestroy_v2", c); }

SIM_EXPORT CUresult cuDevicePrimaryCtxGetState(CUdevice ordinal, unsigned* flags, int* active) {
  Call call("cuDevicePrimaryCtxGetState", Call::Needs::init);
  Device* device = call.failed() ? nullptr : device_at(ordinal);
  if (device == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_DEVICE;
  }
  *flags = 0;
  *active = device->primary != nullptr && Driver::get().contexts.count(device->primary) != 0 ? 1 : 0;
  return CUDA_SUCCESS;
}

namespace {
CUresult create_context(const char* name, CUcontext* out, CUdevice ordinal, bool first) {
  Call call(name, Call::Needs::init);
  Device* device = call.failed() ? nullptr : device_at(ordinal);
  if (device == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_DEVICE;
  }
  // The first sort lives in the lowest 4 GiB, which another context takes.
  if (first && !Driver::get().contexts.empty()) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Context* context = make_context(*device, false);
  context->first = first;
  current_stack().push_back({context, context->life});
  *out = reinterpret_cast<CUcontext>(context);
  return CUDA_SUCCESS;
}
}  // namespace
SIM_EXPORT CUresult cuCtxCreate(CUcontext* out, unsigned, CUdevice ordinal) { return create_context("cuCtxCreate", out, ordinal, true); }
SIM_EXPORT CUresult cuCtxCreate_v2(CUcontext* out, unsigned, CUdevice ordinal) {
  return create_context("cuCtxCreate_v2", out, ordinal, false);
}

SIM_EXPORT CUresult cuCtxPushCurrent_v2(CUcontext handle) {
  Call call("cuCtxPushCurrent_v2", Call::Needs::init);
  auto* context = reinterpret_cast<Context*>(handle);
  if (call.failed() || !is_known(context)) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_CONTEXT;
  }
  current_stack().push_back({context, context->life});
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxPopCurrent_v2(CUcontext* out) {
  Call call("cuCtxPopCurrent_v2", Call::Needs::init);
  auto& stack = current_stack();
  if (call.failed() || stack.empty()) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_CONTEXT;
  }
  if (out != nullptr) {
    *out = reinterpret_cast<CUcontext>(stack.back().context);
  }
  stack.pop_back();
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxSetCurrent(CUcontext handle) {
  Call call("cuCtxSetCurrent", Call::Needs::init);
  auto* context = reinterpret_cast<Context*>(handle);
  if (call.failed() || (context != nullptr && !is_known(context))) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_CONTEXT;
  }
  auto& stack = current_stack();
  if (!stack.empty()) {
    stack.pop_back();
  }
  if (context != nullptr) {
    stack.push_back({context, context->life});
  }
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxGetCurrent(CUcontext* out) {
  Call call("cuCtxGetCurrent", Call::Needs::init);
  if (!call.failed()) {
    *out = current_stack().empty() ? nullptr : reinterpret_cast<CUcontext>(current_stack().back().context);
  }
  return call.result();
}

SIM_EXPORT CUresult cuCtxGetApiVersion(CUcontext handle, unsigned* version) {
  Call call("cuCtxGetApiVersion", handle == nullptr ? Call::Needs::context : Call::Needs::init);
  if (call.failed()) {
    return call.result();
  }
  const Context* context = handle == nullptr ? call.context() : reinterpret_cast<Context*>(handle);
  *version = context->first ? 3010 : 3020;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxGetDevice(CUdevice* out) {
  Call call("cuCtxGetDevice", Call::Needs::context);
  if (!call.failed()) {
    *out = call.device().ordinal;
  }
  return call.result();
}

SIM_EXPORT CUresult cuCtxSynchronize() {
  Call call("cuCtxSynchronize", Call::Needs::context);
  if (call.failed()) {
    return call.result();
  }
  Context* context = call.context();
  CUresult refused = context_wide_call(*context);
  if (refused != CUDA_SUCCESS) {
    return refused;
  }
  wait_until([context] { return is_idle(*context); }, Driver::get().lock);
  release_idle_pools();
  return context->fault;
}
