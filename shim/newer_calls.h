// Listed functions of drivers that are newer than the toolkit here, declared as their documentation says.
#pragma once

#include "runtime/base/cuda_types.h"

extern "C" {
CUresult cuStreamBeginRecaptureToGraph(CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void* callback, void* data);
CUresult cuStreamBeginRecaptureToGraph_ptsz(CUstream stream, CUstreamCaptureMode mode, CUgraph graph, void* callback, void* data);
}
