// Stream capture: what it refuses, what loses it, and how it ends (tests/gpu/captures.expected is what a real one did).
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/sim/driver.h"

namespace sim {

namespace {

int this_thread_id() { return static_cast<int>(syscall(SYS_gettid)); }

}  // namespace

CUstreamCaptureMode& capture_mode() {
  static thread_local CUstreamCaptureMode mine = CU_STREAM_CAPTURE_MODE_GLOBAL;
  return mine;
}

CUresult unsafe_call() {
  if (capture_mode() == CU_STREAM_CAPTURE_MODE_RELAXED) {
    return CUDA_SUCCESS;
  }
  CUresult result = CUDA_SUCCESS;
  for (const auto& each : Driver::get().captures) {
    bool own = each->thread == this_thread_id() && each->mode != CU_STREAM_CAPTURE_MODE_RELAXED;
    bool any = capture_mode() == CU_STREAM_CAPTURE_MODE_GLOBAL && each->mode == CU_STREAM_CAPTURE_MODE_GLOBAL;
    if (own || any) {
      each->invalidated = true;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return result;
}

CUresult context_wide_call(const Context& context) {
  CUresult result = CUDA_SUCCESS;
  for (const auto& each : Driver::get().captures) {
    if (each->origin->context == &context) {
      each->invalidated = true;
      result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
  }
  return result;
}

void add_captured(Capture& capture, GraphNode node) {
  auto& nodes = capture.graph->nodes;
  if (!nodes.empty()) {
    node.after = {nodes.size() - 1};
  }
  nodes.push_back(std::make_unique<GraphNode>(std::move(node)));
}

void end_capture(const std::shared_ptr<Capture>& capture) {
  for (Stream* stream : capture->streams) {
    stream->capture.reset();
  }
  Driver::get().captures.erase(capture);
}

}  // namespace sim

using namespace sim;

namespace {

CUresult begin(const char* name, CUstream handle, CUstreamCaptureMode mode, bool per_thread, bool again = false, CUgraph into = nullptr) {
  Call call(name, Call::Needs::context, per_thread);
  Stream* stream = call.failed() ? nullptr : call.stream(handle);
  if (stream == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_HANDLE;
  }
  if (stream == stream->context->legacy.get()) {
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  if (again && find_graph(into) == nullptr) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  if (stream->capture != nullptr) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  auto capture = std::make_shared<Capture>(Capture{mode, this_thread_id(), stream, {stream}, {}});
  capture->into = into;
  stream->capture = capture;
  Driver::get().captures.insert(capture);
  return CUDA_SUCCESS;
}

CUresult end(const char* name, CUstream handle, CUgraph* graph, bool per_thread) {
  Call call(name, Call::Needs::context, per_thread);
  Stream* stream = call.failed() ? nullptr : call.stream(handle);
  if (stream == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_HANDLE;
  }
  std::shared_ptr<Capture> capture = stream->capture;
  *graph = nullptr;
  if (capture == nullptr) {
    return CUDA_ERROR_ILLEGAL_STATE;
  }
  end_capture(capture);
  if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED && capture->thread != this_thread_id()) {
    return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
  }
  if (capture->invalidated) {
    return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  }
  if (capture->into != nullptr && Driver::get().graphs.count(capture->into) != 0) {
    Driver::get().graphs[capture->into] = std::move(capture->graph);
    *graph = static_cast<CUgraph>(capture->into);
    return CUDA_SUCCESS;
  }
  auto* made = make(Kind::graph, char{});
  Driver::get().graphs[made] = std::move(capture->graph);
  *graph = reinterpret_cast<CUgraph>(made);
  return CUDA_SUCCESS;
}

}  // namespace

SIM_EXPORT CUresult cuStreamBeginCapture_v2(CUstream s, CUstreamCaptureMode mode) {
  return begin("cuStreamBeginCapture_v2", s, mode, false);
}
SIM_EXPORT CUresult cuStreamBeginCapture_v2_ptsz(CUstream s, CUstreamCaptureMode mode) {
  return begin("cuStreamBeginCapture_v2_ptsz", s, mode, true);
}
SIM_EXPORT CUresult cuStreamEndCapture(CUstream s, CUgraph* graph) { return end("cuStreamEndCapture", s, graph, false); }
SIM_EXPORT CUresult cuStreamEndCapture_ptsz(CUstream s, CUgraph* graph) { return end("cuStreamEndCapture_ptsz", s, graph, true); }

// Of CUDA 13.3, which this header is older than: captures anew into a graph that there is.
SIM_EXPORT CUresult cuStreamBeginRecaptureToGraph(CUstream s, CUstreamCaptureMode mode, CUgraph graph, void*, void*) {
  return begin("cuStreamBeginRecaptureToGraph", s, mode, false, true, graph);
}
SIM_EXPORT CUresult cuStreamBeginRecaptureToGraph_ptsz(CUstream s, CUstreamCaptureMode mode, CUgraph graph, void*, void*) {
  return begin("cuStreamBeginRecaptureToGraph_ptsz", s, mode, true, true, graph);
}
