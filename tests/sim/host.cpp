// Pinned host memory, and memory of other processes.
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "tests/sim/driver.h"

namespace sim {

namespace {

constexpr size_t kMostHost = size_t{1} << 40;
std::set<void*>& registered() {
  static auto* all = new std::set<void*>;
  return *all;
}

CUresult allocate(const char* name, void** out, size_t bytes) {
  Call call(name, Call::Needs::context, false, Call::Beside::unsafe);
  if (call.failed() || out == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  *out = nullptr;
  if (bytes == 0) {
    return CUDA_SUCCESS;
  }
  constexpr size_t kPage = 4096;
  *out = bytes < kMostHost ? std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage) : nullptr;
  if (*out == nullptr) {
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  Driver::get().host[*out] = {call.context(), bytes};
  return CUDA_SUCCESS;
}

}  // namespace

void end_host_memory(Context& context) {
  auto& all = Driver::get().host;
  for (auto it = all.begin(); it != all.end();) {
    bool its = it->second.first == &context;
    if (its && registered().erase(it->first) == 0) {
      std::free(it->first);
    }
    it = its ? all.erase(it) : std::next(it);
  }
}

}  // namespace sim

using namespace sim;

SIM_EXPORT CUresult cuMemAllocHost_v2(void** out, size_t bytes) { return allocate("cuMemAllocHost_v2", out, bytes); }
SIM_EXPORT CUresult cuMemHostAlloc(void** out, size_t bytes, unsigned) { return allocate("cuMemHostAlloc", out, bytes); }

SIM_EXPORT CUresult cuMemFreeHost(void* address) {
  Call call("cuMemFreeHost", Call::Needs::init);
  auto& all = Driver::get().host;
  auto it = all.find(address);
  if (call.failed() || address == nullptr) {
    return call.result();
  }
  if (it == all.end() || registered().count(address) != 0) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  wait_until([context = it->second.first] { return is_idle(*context); }, Driver::get().lock);
  all.erase(address);
  std::free(address);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemHostRegister_v2(void* address, size_t bytes, unsigned) {
  Call call("cuMemHostRegister_v2", Call::Needs::context);
  if (call.failed() || bytes == 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  auto& all = Driver::get().host;
  auto begin = reinterpret_cast<uint64_t>(address);
  for (const auto& [other, its] : all) {
    auto at = reinterpret_cast<uint64_t>(other);
    if (at < begin + bytes && begin < at + its.second) {
      return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
  }
  all[address] = {call.context(), bytes};
  registered().insert(address);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuMemHostUnregister(void* address) {
  Call call("cuMemHostUnregister", Call::Needs::init);
  auto& all = Driver::get().host;
  if (call.failed() || registered().count(address) == 0) {
    bool inside = false;
    for (const auto& [other, its] : all) {
      inside = inside || (address > other && static_cast<char*>(address) < static_cast<char*>(other) + its.second);
    }
    return call.failed() ? call.result() : inside ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  }
  wait_until([context = all.at(address).first] { return is_idle(*context); }, Driver::get().lock);
  registered().erase(address);
  all.erase(address);
  return CUDA_SUCCESS;
}

namespace {
struct IpcContents {
  uint64_t ptr;
  uint64_t bytes;
  uint64_t pid;
};
}  // namespace

// Opened again, it is the same address, to be closed as often.
SIM_EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr* out, CUipcMemHandle handle, unsigned) {
  Call call("cuIpcOpenMemHandle_v2", Call::Needs::context);
  IpcContents contents;
  std::memcpy(&contents, &handle, sizeof contents);
  Driver& driver = Driver::get();
  if (call.failed() || contents.pid == static_cast<uint64_t>(driver.pid) || contents.bytes == 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_CONTEXT;
  }
  static std::map<std::pair<uint64_t, uint64_t>, uint64_t> known;
  uint64_t& address = known[{contents.pid, contents.ptr}];
  if (address == 0) {
    static uint64_t next = 0x5a00'0000'0000ULL;
    address = next;
    next += (contents.bytes + kGranule - 1) / kGranule * kGranule;
  }
  auto& opened = driver.opened[address];
  opened = {contents.bytes, opened.second + 1};
  *out = address;
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr ptr) {
  Call call("cuIpcCloseMemHandle", Call::Needs::context);
  auto& opened = Driver::get().opened;
  auto it = opened.find(ptr);
  if (call.failed() || it == opened.end()) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  if (--it->second.second == 0) {
    opened.erase(it);
  }
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuImportExternalMemory(CUexternalMemory* out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC* description) {
  Call call("cuImportExternalMemory", Call::Needs::context);
  if (call.failed() || out == nullptr || description == nullptr || description->size == 0) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_VALUE;
  }
  *out = reinterpret_cast<CUexternalMemory>(new char);
  return CUDA_SUCCESS;
}

SIM_EXPORT CUresult cuDestroyExternalMemory(CUexternalMemory memory) {
  Call call("cuDestroyExternalMemory", Call::Needs::context);
  if (!call.failed()) {
    delete reinterpret_cast<char*>(memory);
  }
  return call.result();
}
