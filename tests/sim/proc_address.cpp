#include <cstring>

#include "tests/sim/driver.h"

// Exports that the header does not declare by their ABI names.
extern "C" CUresult cuGetProcAddress(const char*, void**, int, cuuint64_t);
extern "C" CUresult cuGetProcAddress_v2(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

namespace {

struct Proc {
  const char* name;
  int version;
  bool per_thread;
  void* address;
};

const Proc kProcs[] = {
#define XLOG_PROC(name, version, per_thread, exported) {#name, version, per_thread != 0, reinterpret_cast<void*>(&::exported)},
#include "tests/sim/proc_table.def"
#undef XLOG_PROC
};

constexpr int kDriverVersion = 13000;

// A version above the driver's is an error; an unknown name, or a version below the function's first, is a NULL.
CUresult resolve(const char* name, const char* symbol, void** pfn, int version, cuuint64_t flags, CUdriverProcAddressQueryResult* status) {
  sim::Call call(name, sim::Call::Needs::nothing);
  if (call.failed()) {
    return call.result();
  }
  if (pfn == nullptr || symbol == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  *pfn = nullptr;
  if (version > kDriverVersion) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Proc* best = nullptr;
  bool known = false;
  bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0;
  for (const Proc& proc : kProcs) {
    if (std::strcmp(proc.name, symbol) != 0) {
      continue;
    }
    known = true;
    bool fits = proc.version <= version && (!proc.per_thread || per_thread);
    bool better = best == nullptr || proc.version > best->version || (proc.version == best->version && proc.per_thread);
    if (fits && (better || (proc.per_thread && !best->per_thread))) {
      best = &proc;
    }
  }
  if (best != nullptr) {
    *pfn = best->address;
  }
  if (status != nullptr) {
    *status = best != nullptr ? CU_GET_PROC_ADDRESS_SUCCESS
              : known         ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                              : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return CUDA_SUCCESS;
}

}  // namespace

SIM_EXPORT CUresult cuGetProcAddress(const char* symbol, void** pfn, int version, cuuint64_t flags) {
  return resolve("cuGetProcAddress", symbol, pfn, version, flags, nullptr);
}

SIM_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int version, cuuint64_t flags,
                                        CUdriverProcAddressQueryResult* status) {
  return resolve("cuGetProcAddress_v2", symbol, pfn, version, flags, status);
}

// A function that no driver has yet, for what is said of one.
SIM_EXPORT CUresult cuMemAllocOfTheFuture(CUdeviceptr*, size_t) { return CUDA_ERROR_NOT_SUPPORTED; }
