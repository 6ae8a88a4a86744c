#include "tools/analysis/timeline.h"

namespace xlog::tools {

void Timeline::go_to(const TimeSpan& span, uint64_t time) {
  uint64_t length = span.length() + 1;
  uint64_t since = time > span.first ? std::min(time - span.first, length - 1) : 0;
  auto scaled = static_cast<unsigned __int128>(since) * kSteps / length;
  auto step = static_cast<size_t>(scaled);
  if (highest_.empty()) {
    highest_.resize(kSteps);
  }
  // What was live before goes on into the steps without an event. Threads may be a little out of order.
  for (size_t i = step_ + 1; i <= step; ++i) {
    highest_[i] = std::max(highest_[i], last_);
  }
  step_ = step;
  auto at = [&](size_t n) {
    return span.first + static_cast<uint64_t>((static_cast<unsigned __int128>(n) * length + kSteps - 1) / kSteps);
  };
  begin_ = step == 0 ? 0 : at(step);
  end_ = step + 1 == kSteps ? UINT64_MAX : at(step + 1);
}

void Timeline::finish() {
  for (size_t i = step_ + 1; i < highest_.size(); ++i) {
    highest_[i] = std::max(highest_[i], last_);
  }
}

}  // namespace xlog::tools
