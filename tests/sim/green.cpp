// Contexts that are attached to and detached from, and green contexts: views of the primary context, which they keep. Memory that is
// made while one is current is the primary context's, and stays when the green context ends (measured on an H200).
#include "tests/sim/driver.h"

using namespace sim;

namespace {

constexpr unsigned kMultiprocessors = 132;
constexpr unsigned kLeast = 8;  // of a part

// Handles: a green context, with the view that is current where it is.
std::map<void*, Context*>& greens() {
  static auto* all = new std::map<void*, Context*>;
  return *all;
}
std::set<void*>& descriptors() {
  static auto* all = new std::set<void*>;
  return *all;
}

Device* device_at(CUdevice ordinal) {
  auto& devices = Driver::get().devices;
  return ordinal >= 0 && static_cast<size_t>(ordinal) < devices.size() ? devices[static_cast<size_t>(ordinal)].get() : nullptr;
}

}  // namespace

SIM_EXPORT CUresult cuCtxAttach(CUcontext* out, unsigned flags) {
  Call call("cuCtxAttach", Call::Needs::context);
  if (call.failed() || out == nullptr || flags != 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  ++call.context()->attached;
  *out = reinterpret_cast<CUcontext>(call.context());
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxDetach(CUcontext handle) {
  Call call("cuCtxDetach", Call::Needs::init);
  auto* context = reinterpret_cast<Context*>(handle);
  if (call.failed()) {
    return call.result();
  }
  auto& stack = current_stack();
  bool current = is_known(context) && !stack.empty() && stack.back().context == context && stack.back().is_alive();
  if (!current || (context->attached == 0 && context->primary)) {
    return CUDA_ERROR_INVALID_CONTEXT;
  }
  if (context->attached > 0) {
    --context->attached;
    return CUDA_SUCCESS;
  }
  finish_work(context);
  stack.pop_back();
  end_context(*context);
  if (is_hostile()) {
    end(Kind::context, context);
  }
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDeviceGetDevResource(CUdevice ordinal, CUdevResource* out, CUdevResourceType type) {
  Call call("cuDeviceGetDevResource", Call::Needs::init);
  if (call.failed() || device_at(ordinal) == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_DEVICE;
  }
  if (out == nullptr || type != CU_DEV_RESOURCE_TYPE_SM) {
    return CUDA_ERROR_INVALID_RESOURCE_TYPE;
  }
  *out = {};
  out->type = type;
  out->sm = {kMultiprocessors, kLeast, kLeast};
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDevSmResourceSplitByCount(CUdevResource* result, unsigned* groups, const CUdevResource* input, CUdevResource* rest,
                                                unsigned, unsigned least) {
  Call call("cuDevSmResourceSplitByCount", Call::Needs::init);
  if (call.failed() || groups == nullptr || input == nullptr || input->type != CU_DEV_RESOURCE_TYPE_SM) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  unsigned each = (std::max(least, kLeast) + kLeast - 1) / kLeast * kLeast;
  unsigned possible = input->sm.smCount / each;
  if (result == nullptr) {
    *groups = possible;
    return CUDA_SUCCESS;
  }
  *groups = std::min(*groups, possible);
  for (unsigned i = 0; i < *groups; ++i) {
    result[i] = *input;
    result[i].sm.smCount = each;
  }
  if (rest != nullptr) {
    *rest = *input;
    rest->sm.smCount = input->sm.smCount - *groups * each;
  }
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDevResourceGenerateDesc(CUdevResourceDesc* out, CUdevResource* resources, unsigned count) {
  Call call("cuDevResourceGenerateDesc", Call::Needs::init);
  if (call.failed() || out == nullptr || resources == nullptr || count == 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  void* made = new char;
  descriptors().insert(made);
  *out = static_cast<CUdevResourceDesc>(made);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGreenCtxCreate(CUgreenCtx* out, CUdevResourceDesc resources, CUdevice ordinal, unsigned flags) {
  Call call("cuGreenCtxCreate", Call::Needs::init);
  Device* device = call.failed() ? nullptr : device_at(ordinal);
  if (device == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_DEVICE;
  }
  if (out == nullptr || descriptors().count(resources) == 0 || flags != CU_GREEN_CTX_DEFAULT_STREAM) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Context* of = retain_primary(*device);
  Context* view = make_context(*device, false);
  view->of = of;
  void* made = new char;
  greens()[made] = view;
  *out = static_cast<CUgreenCtx>(made);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuCtxFromGreenCtx(CUcontext* out, CUgreenCtx green) {
  Call call("cuCtxFromGreenCtx", Call::Needs::init);
  auto it = greens().find(green);
  if (call.failed() || it == greens().end() || out == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  *out = reinterpret_cast<CUcontext>(it->second);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGreenCtxStreamCreate(CUstream* out, CUgreenCtx green, unsigned flags, int) {
  Call call("cuGreenCtxStreamCreate", Call::Needs::init);
  auto it = greens().find(green);
  if (call.failed() || it == greens().end() || out == nullptr || flags != CU_STREAM_NON_BLOCKING) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  Driver& driver = Driver::get();
  Context* context = it->second->of;
  auto* stream = make(Kind::stream, Stream{context, false, driver.next_stream_id++, {}, {}});
  driver.streams.insert(stream);
  context->streams.insert(stream);
  *out = reinterpret_cast<CUstream>(stream);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuGreenCtxDestroy(CUgreenCtx green) {
  Call call("cuGreenCtxDestroy", Call::Needs::init);
  auto it = greens().find(green);
  if (call.failed() || it == greens().end()) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_CONTEXT;
  }
  Context* view = it->second;
  Device& device = *view->device;
  greens().erase(it);
  delete reinterpret_cast<char*>(green);
  end_context(*view);
  if (is_hostile()) {
    end(Kind::context, view);
  }
  release_primary(device);
  return CUDA_SUCCESS;
}
