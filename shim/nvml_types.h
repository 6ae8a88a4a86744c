// What NVML's header says of the calls that are answered here; it is not part of the toolkit that this is built with.
#pragma once

extern "C" {

using nvmlDevice_t = struct nvmlDevice_st*;
using nvmlReturn_t = int;
struct nvmlMemory_t {  // bytes
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};
struct nvmlMemory_v2_t {  // bytes
  unsigned version;
  unsigned long long total;
  unsigned long long reserved;
  unsigned long long free;
  unsigned long long used;
};
struct nvmlProcessInfo_t {
  unsigned pid;
  unsigned long long usedGpuMemory;  // bytes; all ones: not told
  unsigned gpuInstanceId;
  unsigned computeInstanceId;
};
nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory);
nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t* memory);

}  // extern "C"
