// All of the runtime's public headers, for a C++ program that links libxlog_runtime.a. runtime/README.md says how the
// parts fit.
#pragma once

#include "runtime/library/device_runtime.h"         // IWYU pragma: export
#include "runtime/library/driver_loader.h"          // IWYU pragma: export
#include "runtime/library/launch_recorder.h"        // IWYU pragma: export
#include "runtime/library/sinks.h"                  // IWYU pragma: export
#include "runtime/resource/async_cuda_resource.h"   // IWYU pragma: export
#include "runtime/resource/direct_cuda_resource.h"  // IWYU pragma: export
#include "runtime/resource/global_device_budget.h"  // IWYU pragma: export
#include "runtime/resource/logging_resource.h"      // IWYU pragma: export
#include "runtime/resource/pool_resource.h"         // IWYU pragma: export
