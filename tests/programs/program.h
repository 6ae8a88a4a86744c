// What the test programs share. Each shows one behaviour, prints it, and exits 0 when it could be shown at all.
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// A driver call that must work for the program to make sense.
#define MUST(call)                                                                              \
  do {                                                                                          \
    CUresult must_result = (call);                                                              \
    if (must_result != CUDA_SUCCESS) {                                                          \
      std::printf("%s:%d: %s: %d\n", __FILE__, __LINE__, #call, static_cast<int>(must_result)); \
      std::fflush(stdout);                                                                      \
      std::exit(3);                                                                             \
    }                                                                                           \
  } while (0)

inline CUcontext start(int device = 0) {
  CUcontext context = nullptr;
  MUST(cuInit(0));
  MUST(cuDevicePrimaryCtxRetain(&context, device));
  MUST(cuCtxSetCurrent(context));
  return context;
}

inline CUdeviceptr must_alloc(size_t bytes) {
  CUdeviceptr ptr = 0;
  MUST(cuMemAlloc_v2(&ptr, bytes));
  return ptr;
}
