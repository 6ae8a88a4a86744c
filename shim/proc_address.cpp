// The driver's own resolver, in its two ABIs: it answers first, and the address that it returned is replaced when it is
// the address of a function that we wrap. A failure, a NULL, an unknown name, a status: passed on untouched.
#include "shim/entry.h"

using xlog::Entry;
using xlog::Row;

namespace {

using Resolve4 = CUresult(CUDAAPI*)(const char*, void**, int, cuuint64_t);
using Resolve5 = CUresult(CUDAAPI*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

void replace(CUresult result, const char* symbol, void** pfn) noexcept {
  if (result == CUDA_SUCCESS && pfn != nullptr && *pfn != nullptr) {
    void* ours = xlog::entry_for(*pfn);
    if (ours == *pfn) {
      xlog::note_unhooked(symbol);
    }
    *pfn = ours;
  }
}

}  // namespace

extern "C" {

// Eleven-point-three's ABI: there is no fifth argument, and its register holds junk.
XLOG_EXPORT CUresult cuGetProcAddress(const char* symbol, void** pfn, int version, cuuint64_t flags) {
  Entry entry(Row::cuGetProcAddress);
  CUresult result = entry.forward<Resolve4>(symbol, pfn, version, flags);
  replace(result, symbol, pfn);
  return result;
}

XLOG_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** pfn, int version, cuuint64_t flags,
                                         CUdriverProcAddressQueryResult* status) {
  Entry entry(Row::cuGetProcAddress_v2);
  CUresult result = entry.forward<Resolve5>(symbol, pfn, version, flags, status);
  replace(result, symbol, pfn);
  return result;
}

}  // extern "C"
