#include "tools/analysis/numbering.h"

namespace xlog::tools {

uint32_t Places::look_up(size_t process, uint64_t stack) {
  const Stack* found = stack != kNone ? report_.stacks[process].find(stack) : nullptr;
  auto next = static_cast<uint32_t>(report_.places.size());
  uint32_t number = 0;
  bool is_new = false;
  if (found != nullptr) {
    auto [it, fresh] = by_frames_.try_emplace(found->frames, next);
    number = it->second;
    is_new = fresh;
  } else {  // all that have no stack are one
    auto [it, fresh] = by_number_.try_emplace(stack == kNone ? StackKey{0, kNone} : StackKey{process, stack}, next);
    number = it->second;
    is_new = fresh;
  }
  if (is_new) {
    report_.places.push_back({process, stack});
  }
  if (stack < kMostNumbers) {
    std::vector<uint32_t>& known = known_[process];
    if (known.size() <= stack) {
      known.resize(stack + 1, kUnknown);
    }
    known[stack] = number;
  }
  return number;
}

}  // namespace xlog::tools
