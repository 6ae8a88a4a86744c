// Blocks come and go by every call that makes and frees them, each with bytes of its own that are read back. The program asks neither
// streams nor events, so that a driver that refuses such a call refuses it to somebody else.
#include <vector>

#include "programs/program.h"

namespace {

constexpr size_t kBlocks = 24;

struct Block {
  CUdeviceptr at;
  size_t bytes;
  bool ordered;
};

int bad = 0;

void check(const Block& block, unsigned char value) {
  std::vector<unsigned char> found(block.bytes);
  MUST(cuMemcpyDtoH_v2(found.data(), block.at, block.bytes));
  for (unsigned char each : found) {
    bad += each != value ? 1 : 0;
  }
}

}  // namespace

int main() {
  start();
  CUstream stream = nullptr;
  MUST(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
  for (unsigned round = 0; round < 8; ++round) {
    std::vector<Block> blocks;
    for (size_t i = 0; i < kBlocks; ++i) {
      Block block{.at = 0, .bytes = 100 + 300 * (i % 5), .ordered = i % 2 != 0};
      MUST(block.ordered ? cuMemAllocAsync(&block.at, block.bytes, stream) : cuMemAlloc_v2(&block.at, block.bytes));
      MUST(cuMemsetD8Async(block.at, static_cast<unsigned char>(round * kBlocks + i), block.bytes, stream));
      blocks.push_back(block);
    }
    MUST(cuCtxSynchronize());
    for (size_t i = 0; i < kBlocks; ++i) {
      check(blocks[i], static_cast<unsigned char>(round * kBlocks + i));
      MUST(i % 3 == 0 ? cuMemFreeAsync(blocks[i].at, stream) : cuMemFree_v2(blocks[i].at));
    }
  }
  MUST(cuCtxSynchronize());
  std::printf("%d bytes were not the program's own\n", bad);
  return 0;
}
