// NVML's list of the processes on a GPU.
#pragma once

#include "runtime/refusal/gpu_processes.h"

namespace xlog {

// Loads NVML for the length of the call where the program has not: only done when memory was refused. Replaces a pending
// dlerror of the thread's when it has to load it.
bool list_gpu_processes(std::string_view uuid, GpuProcesses& out) noexcept;

}  // namespace xlog
