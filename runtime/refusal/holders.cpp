#include "runtime/refusal/holders.h"

#include "runtime/base/memory_map.h"

namespace xlog {

namespace {

// Stacks that find no place are counted in the sums only.
class HolderTable {
 public:
  static constexpr size_t kSlots = 1 << 14;
  static constexpr size_t kProbes = 64;

  HolderTable() noexcept : slots_(static_cast<LiveHolder*>(map_state(kSlots * sizeof(LiveHolder)))) {}
  ~HolderTable() {
    if (slots_ != nullptr) {
      unmap_state(slots_, kSlots * sizeof(LiveHolder));
    }
  }
  HolderTable(const HolderTable&) = delete;
  HolderTable& operator=(const HolderTable&) = delete;

  void add(const DeviceBlock& block) noexcept {
    for (size_t i = 0; slots_ != nullptr && i < kProbes; ++i) {
      LiveHolder& slot = slots_[(block.stack_id * 0x9E3779B97F4A7C15ULL + i) % kSlots];
      if (slot.blocks == 0 || slot.stack_id == block.stack_id) {
        slot.stack_id = block.stack_id;
        slot.bytes += block.bytes;
        ++slot.blocks;
        return;
      }
    }
  }

  void take_largest(LiveHolders& out) const noexcept {
    for (size_t i = 0; slots_ != nullptr && i < kSlots; ++i) {
      if (slots_[i].blocks != 0) {
        place(slots_[i], out);
      }
    }
  }

 private:
  static bool before(const LiveHolder& a, const LiveHolder& b) noexcept {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.stack_id < b.stack_id;
  }
  static void place(const LiveHolder& one, LiveHolders& out) noexcept {
    size_t at = out.count;
    while (at > 0 && before(one, out.list[at - 1])) {
      --at;
    }
    if (at == LiveHolders::kMost) {
      return;
    }
    size_t last = out.count < LiveHolders::kMost ? out.count++ : LiveHolders::kMost - 1;
    for (size_t i = last; i > at; --i) {
      out.list[i] = out.list[i - 1];
    }
    out.list[at] = one;
  }

  LiveHolder* slots_;
};

}  // namespace

void find_holders(BlockRegistry& registry, int device, LiveHolders& out) noexcept {
  HolderTable table;
  registry.take_if(
      [&](DeviceBlock& block) {
        bool wanted = device >= 0 ? block.device == device && !is_outside(block.kind) : block.kind == Kind::host;
        if (wanted) {
          out.bytes += block.bytes;
          ++out.blocks;
          table.add(block);
        }
        return false;
      },
      nullptr, SIZE_MAX);
  table.take_largest(out);
}

}  // namespace xlog
