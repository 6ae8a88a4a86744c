// NAME.stacks.csv in memory, what a frame is to a reader, and which framework's cache a stack belongs to.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "tools/log/csv_line.h"

namespace xlog::tools {

struct Frame {
  std::string module;  // path
  std::string build_id;
  uint64_t offset = 0;
  std::string function;  // demangled; empty when it has no name
  std::string file;
  uint64_t line = 0;
};

struct Stack {
  std::vector<const Frame*> frames;  // innermost first
};

// The frames of a run, each once: two processes' stacks are the same when their frames are.
class FrameTable {
 public:
  // By module, build-id and offset; a Python frame by all it has. `fields`: of NAME.stacks.csv, in its order.
  Frame& of(const CsvLine& fields, uint64_t offset);
  // Fills functions, files and lines in from the modules on this machine, where the build-id agrees.
  void resolve();
  [[nodiscard]] bool needs_names() const;

 private:
  std::unordered_map<std::string, Frame> frames_;
};

class StackFile {
 public:
  explicit StackFile(std::shared_ptr<FrameTable> frames = std::make_shared<FrameTable>()) : frames_(std::move(frames)) {}
  // Reads `path`; a missing or cut file gives what there is.
  void read(const std::string& path);
  void resolve() { frames_->resolve(); }
  // Writes the file anew with the names, so that it can be read elsewhere. Keeps the old one when that fails.
  bool write(const std::string& path) const;

  [[nodiscard]] const Stack* find(uint64_t id) const;
  [[nodiscard]] size_t size() const { return stacks_.size(); }
  [[nodiscard]] bool needs_names() const { return frames_->needs_names(); }

 private:
  std::shared_ptr<FrameTable> frames_;
  std::map<uint64_t, Stack> stacks_;
};

// `file:line` or the module, for people.
std::string where_of(const Frame& frame);
std::string name_of(const Frame& frame);

// Ours, the driver's, an allocator's or a language binding's: not the code that wanted the memory.
bool is_hidden(const Frame& frame);
// The frames to show: the visible ones, or all when nothing else is left.
std::vector<const Frame*> visible_frames(const Stack& stack, bool all);

// "PyTorch's caching allocator" and so on, or "" when the stack is a direct request. `environment` may say that the
// framework was told not to cache.
std::string cache_of(const Stack& stack, const std::map<std::string, std::string>& environment);
// Freed by exit handlers or static destructors.
bool is_exit(const Stack& stack);

}  // namespace xlog::tools
