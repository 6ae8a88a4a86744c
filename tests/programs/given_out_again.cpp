// Which freed blocks come back from the backend `cache`: asked of the driver, by its count of the calls that made memory.
#include <dlfcn.h>

#include <cstring>

#include "programs/program.h"

namespace {

constexpr size_t kBytes = 3 << 20;

// Whether an allocation was served without the driver.
bool again(CUdeviceptr& p, size_t bytes) {
  auto last = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "xlog_sim_last_call"));
  MUST(cuMemFree_v2(0));  // the last call is a free now
  p = must_alloc(bytes);
  return std::strcmp(last(), "cuMemAlloc_v2") != 0;
}

void show(const char* what, bool value) { std::printf("%s: %d\n", what, value); }

}  // namespace

int main() {
  CUcontext first = start();
  CUdeviceptr p = must_alloc(kBytes);
  MUST(cuMemFree_v2(p));
  show("given out again", again(p, kBytes));
  MUST(cuMemFree_v2(p));
  CUdeviceptr q = 0;
  show("one byte more", again(q, kBytes + 1));
  MUST(cuMemFree_v2(q));
  show("one byte less", again(q, kBytes - 1));
  MUST(cuMemFree_v2(q));
  CUcontext other = nullptr;
  MUST(cuCtxCreate_v2(&other, 0, 0));
  show("in another context", again(q, kBytes));
  MUST(cuMemFree_v2(q));
  MUST(cuCtxDestroy_v2(other));
  MUST(cuCtxSetCurrent(first));
  MUST(cuMemFree_v2(must_alloc(kBytes)));
  p = must_alloc(kBytes);
  CUipcMemHandle handle;
  MUST(cuIpcGetMemHandle(&handle, p + 256));
  MUST(cuMemFree_v2(p));
  show("shared, given out again", again(p, kBytes));
  int on = 1;
  MUST(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, p));
  MUST(cuMemFree_v2(p));
  show("with an attribute, given out again", again(p, kBytes));
  return 0;
}
