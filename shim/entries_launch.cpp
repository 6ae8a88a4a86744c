// Launches of kernels, and the calls that wait for them or ask whether they are done. The driver's own, but with a guard: a
// zone's pattern must be there before a kernel can overrun it, checks may follow the kernel in its stream, and a fault at
// a fence is explained where it first comes up.
#include "shim/entry.h"

using xlog::Entry;
using xlog::Row;
using xlog::StreamArg;

#define XLOG_UNWRAP(...) __VA_ARGS__

extern "C" {

// XLOG_LAUNCH(name, type, (parameters), function, stream, arguments...)
#define XLOG_LAUNCH(name, type, parameters, function, stream, ...)                                          \
  XLOG_EXPORT CUresult name parameters {                                                                    \
    Entry entry(Row::name);                                                                                 \
    auto call = [&]() noexcept { return entry.forward<decltype(&::type)>(__VA_ARGS__); };                   \
    return entry.serves() ? entry.runtime().launch(function, StreamArg{XLOG_UNWRAP stream}, call) : call(); \
  }
#define XLOG_LAUNCHES(suffix, per_thread)                                                                                                  \
  XLOG_LAUNCH(cuLaunchKernel##suffix, cuLaunchKernel,                                                                                      \
              (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s,    \
               void** arguments, void** extra),                                                                                            \
              f, (s, per_thread), f, gx, gy, gz, bx, by, bz, shared, s, arguments, extra)                                                  \
  XLOG_LAUNCH(cuLaunchKernelEx##suffix, cuLaunchKernelEx, (const CUlaunchConfig* config, CUfunction f, void** arguments, void** extra), f, \
              (config != nullptr ? config->hStream : nullptr, per_thread), config, f, arguments, extra)                                    \
  XLOG_LAUNCH(cuLaunchCooperativeKernel##suffix, cuLaunchCooperativeKernel,                                                                \
              (CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, CUstream s,    \
               void** arguments),                                                                                                          \
              f, (s, per_thread), f, gx, gy, gz, bx, by, bz, shared, s, arguments)
XLOG_LAUNCHES(, false)
XLOG_LAUNCHES(_ptsz, true)
XLOG_LAUNCH(cuLaunch, cuLaunch, (CUfunction f), f, (nullptr, false), f)
XLOG_LAUNCH(cuLaunchGrid, cuLaunchGrid, (CUfunction f, int width, int height), f, (nullptr, false), f, width, height)
XLOG_LAUNCH(cuLaunchGridAsync, cuLaunchGridAsync, (CUfunction f, int width, int height, CUstream s), f, (s, false), f, width, height, s)

// Into streams of several devices: no check follows it.
XLOG_EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS* launches, unsigned count, unsigned flags) {
  Entry entry(Row::cuLaunchCooperativeKernelMultiDevice);
  return entry.explained(entry.forward<decltype(&::cuLaunchCooperativeKernelMultiDevice)>(launches, count, flags),
                         "cuLaunchCooperativeKernelMultiDevice");
}

#define XLOG_WAIT(name, parameters, ...)                                               \
  XLOG_EXPORT CUresult name parameters {                                               \
    Entry entry(Row::name);                                                            \
    return entry.explained(entry.forward<CUresult(*) parameters>(__VA_ARGS__), #name); \
  }
XLOG_WAIT(cuCtxSynchronize, ())
XLOG_WAIT(cuCtxSynchronize_v2, (CUcontext c), c)  // since 13.0
XLOG_WAIT(cuStreamSynchronize, (CUstream s), s)
XLOG_WAIT(cuStreamSynchronize_ptsz, (CUstream s), s)
XLOG_WAIT(cuStreamQuery, (CUstream s), s)
XLOG_WAIT(cuStreamQuery_ptsz, (CUstream s), s)
XLOG_WAIT(cuEventSynchronize, (CUevent e), e)
XLOG_WAIT(cuEventQuery, (CUevent e), e)

}  // extern "C"
