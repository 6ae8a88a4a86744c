// Peer access to the pool's blocks. cuCtxEnablePeerAccess acts on plain memory alone; a pool is granted by a call of its
// own, one for each peer and never for its owner (rejected with 101, cuda-python issue 2807).
#include "runtime/base/diagnostics.h"
#include "runtime/resource/current_context.h"
#include "runtime/resource/pool_source.h"
#include "runtime/resource/relaxed_capture.h"

namespace xlog {

namespace {

constexpr size_t kProbe = 512;
constexpr unsigned char kFirst = 0x5a;
constexpr unsigned char kSecond = 0xa5;

}  // namespace

// A copy from the pool to the reader's memory and one back: both must arrive.
bool PoolSource::peer_reads_pool(CUcontext owner, CUcontext reader) noexcept {
  CUdeviceptr pooled = 0;
  CUdeviceptr plain = 0;
  CUstream stream = nullptr;
  unsigned char there[kProbe] = {};
  unsigned char back[kProbe] = {};
  bool good = false;
  RelaxedCapture relaxed(driver_);
  {
    CurrentContext in_owner(driver_, owner);
    ContextLanes::Use lane = work().lanes().open(driver_, owner, true);
    if (!lane || make(*lane, kProbe, pooled) != CUDA_SUCCESS) {
      return false;
    }
    good = driver_.cuMemsetD8Async(pooled, kFirst, kProbe, lane->stream) == CUDA_SUCCESS &&
           driver_.cuStreamSynchronize(lane->stream) == CUDA_SUCCESS;
  }
  {
    CurrentContext in_reader(driver_, reader);
    good = good && driver_.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
           driver_.cuMemAlloc_v2(&plain, kProbe) == CUDA_SUCCESS &&
           driver_.cuMemcpyPeerAsync(plain, reader, pooled, owner, kProbe, stream) == CUDA_SUCCESS &&
           driver_.cuMemcpyDtoHAsync_v2(there, plain, kProbe, stream) == CUDA_SUCCESS &&
           driver_.cuMemsetD8Async(plain, kSecond, kProbe, stream) == CUDA_SUCCESS &&
           driver_.cuMemcpyPeerAsync(pooled, owner, plain, reader, kProbe, stream) == CUDA_SUCCESS &&
           driver_.cuStreamSynchronize(stream) == CUDA_SUCCESS;
    if (plain != 0) {
      driver_.cuMemFree_v2(plain);
    }
    if (stream != nullptr) {
      driver_.cuStreamDestroy_v2(stream);
    }
  }
  CurrentContext in_owner(driver_, owner);
  ContextLanes::Use lane = work().lanes().find(owner);
  if (lane) {
    good = good && driver_.cuMemcpyDtoHAsync_v2(back, pooled, kProbe, lane->stream) == CUDA_SUCCESS &&
           driver_.cuStreamSynchronize(lane->stream) == CUDA_SUCCESS;
    driver_.cuMemFreeAsync(pooled, lane->stream);
  }
  for (size_t i = 0; i < kProbe; ++i) {
    good = good && there[i] == kFirst && back[i] == kSecond;
  }
  return good;
}

void PoolSource::grant_peer(CUcontext owner, CUcontext reader, int reader_device) noexcept {
  peers_.store(true, std::memory_order_relaxed);
  CUmemoryPool known = pool_.load(std::memory_order_acquire);
  if (known == nullptr || reader_device == device_) {
    return;  // nothing of it was given out
  }
  CUmemAccessDesc access{};
  access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  access.location.id = reader_device;
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  bool granted = driver_.cuMemPoolSetAccess != nullptr && driver_.cuMemPoolSetAccess(known, &access, 1) == CUDA_SUCCESS &&
                 peer_reads_pool(owner, reader);
  if (!granted && used() != 0) {
    Text<300> line;
    line.put("GPU ").decimal(static_cast<uint64_t>(reader_device)).put(" cannot be given access to what GPU ");
    line.decimal(static_cast<uint64_t>(device_)).put(" has from XLOG_BACKEND=async: run with XLOG_BACKEND=cache");
    say(line.view());
  }
}

}  // namespace xlog
