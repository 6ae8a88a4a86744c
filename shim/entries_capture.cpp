// Captures begin and end: what an observer does beside one could lose it (resource/capture_gate.h).
#include "shim/entry.h"
#include "shim/newer_calls.h"

using xlog::Entry;
using xlog::Row;

extern "C" {

// The first form has no mode: it is the driver's to choose.
#define XLOG_BEGIN_CAPTURE(name, per_thread)                                                    \
  XLOG_EXPORT CUresult name(CUstream stream) {                                                  \
    Entry entry(Row::name);                                                                     \
    auto call = [&]() noexcept { return entry.forward<CUresult (*)(CUstream)>(stream); };       \
    return entry.serves() ? entry.runtime().begin_capture({stream, per_thread}, call) : call(); \
  }
XLOG_BEGIN_CAPTURE(cuStreamBeginCapture, false)
XLOG_BEGIN_CAPTURE(cuStreamBeginCapture_ptsz, true)

#define XLOG_BEGIN_CAPTURE_V2(name, per_thread)                                                               \
  XLOG_EXPORT CUresult name(CUstream stream, CUstreamCaptureMode mode) {                                      \
    Entry entry(Row::name);                                                                                   \
    auto call = [&]() noexcept { return entry.forward<decltype(&::cuStreamBeginCapture_v2)>(stream, mode); }; \
    return entry.serves() ? entry.runtime().begin_capture({stream, per_thread}, call) : call();               \
  }
XLOG_BEGIN_CAPTURE_V2(cuStreamBeginCapture_v2, false)
XLOG_BEGIN_CAPTURE_V2(cuStreamBeginCapture_v2_ptsz, true)

#define XLOG_BEGIN_CAPTURE_TO_GRAPH(name, per_thread)                                                                            \
  XLOG_EXPORT CUresult name(CUstream stream, CUgraph graph, const CUgraphNode* nodes, const CUgraphEdgeData* data, size_t count, \
                            CUstreamCaptureMode mode) {                                                                          \
    Entry entry(Row::name);                                                                                                      \
    auto call = [&]() noexcept {                                                                                                 \
      return entry.forward<decltype(&::cuStreamBeginCaptureToGraph)>(stream, graph, nodes, data, count, mode);                   \
    };                                                                                                                           \
    return entry.serves() ? entry.runtime().begin_capture({stream, per_thread}, call) : call();                                  \
  }
XLOG_BEGIN_CAPTURE_TO_GRAPH(cuStreamBeginCaptureToGraph, false)
XLOG_BEGIN_CAPTURE_TO_GRAPH(cuStreamBeginCaptureToGraph_ptsz, true)

// In drivers after CUDA 13.2, and in no header here yet.
#define XLOG_BEGIN_RECAPTURE(name, per_thread)                                                                                       \
  XLOG_EXPORT CUresult name(CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void* callback, void* data) {                  \
    Entry entry(Row::name);                                                                                                          \
    auto call = [&]() noexcept {                                                                                                     \
      return entry.forward<CUresult (*)(CUstream, CUstreamCaptureMode, CUgraph, void*, void*)>(stream, mode, graph, callback, data); \
    };                                                                                                                               \
    return entry.serves() ? entry.runtime().begin_capture({stream, per_thread}, call) : call();                                      \
  }
XLOG_BEGIN_RECAPTURE(cuStreamBeginRecaptureToGraph, false)
XLOG_BEGIN_RECAPTURE(cuStreamBeginRecaptureToGraph_ptsz, true)

#define XLOG_END_CAPTURE(name, per_thread)                                                                \
  XLOG_EXPORT CUresult name(CUstream stream, CUgraph* graph) {                                            \
    Entry entry(Row::name);                                                                               \
    auto call = [&]() noexcept { return entry.forward<decltype(&::cuStreamEndCapture)>(stream, graph); }; \
    return entry.serves() ? entry.runtime().end_capture({stream, per_thread}, call) : call();             \
  }
XLOG_END_CAPTURE(cuStreamEndCapture, false)
XLOG_END_CAPTURE(cuStreamEndCapture_ptsz, true)

}  // extern "C"
