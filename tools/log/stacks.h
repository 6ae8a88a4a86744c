// NAME.stacks.csv in memory, and which framework's cache a stack belongs to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tools/log/folding.h"
#include "tools/log/frame_table.h"
#include "tools/log/frame_text.h"

namespace xlog::tools {

struct Stack {
  std::vector<const Frame*> frames;  // innermost first; inlined functions are frames, too
};

class StackFile {
 public:
  explicit StackFile(std::shared_ptr<FrameTable> frames = std::make_shared<FrameTable>()) : frames_(std::move(frames)) {}
  // Reads `path`; a missing or cut file gives what there is.
  void read(const std::string& path);
  void resolve() { frames_->resolve(); }
  // Writes the file anew with the names, so that it can be read elsewhere. Keeps the old one when that fails. Functions at
  // one address are rows of one depth, the innermost first.
  bool write(const std::string& path) const;

  // With the frames as they are now: a stack that was found before the names were resolved is to be found again.
  [[nodiscard]] const Stack* find(uint64_t id) const;
  [[nodiscard]] size_t size() const { return stacks_.size(); }
  [[nodiscard]] bool needs_names() const { return frames_->needs_names(); }

 private:
  struct Entry {
    std::vector<const Site*> sites;
    mutable Stack stack;           // made of the sites when it is asked for
    mutable uint64_t version = 0;  // of the table that it was made of
  };
  void add(uint64_t id, std::vector<Frame>& frames);

  std::shared_ptr<FrameTable> frames_;
  std::map<uint64_t, Entry> stacks_;
};

// "PyTorch's caching allocator" and so on, or "" when the stack is a direct request. `environment` may say that the
// framework was told not to cache.
std::string cache_of(const Stack& stack, const std::map<std::string, std::string>& environment);
// Freed by exit handlers or static destructors.
bool is_exit(const Stack& stack);

}  // namespace xlog::tools
