// The frames of a run's stacks, each once.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace xlog::tools {

struct Frame {
  std::string module;  // path
  std::string build_id;
  uint64_t offset = 0;
  std::string function;  // demangled; empty when it has no name
  std::string file;
  uint64_t line = 0;
  bool inlined = false;  // into the frame that follows it, which has the same address
};

// What stands at one address: the functions inlined there, the innermost first, and last the one that they are in. A Python
// function is alone.
struct Site {
  std::vector<Frame> frames;
  [[nodiscard]] bool has_names() const;
};

// Two processes' stacks are the same when their sites are.
class FrameTable {
 public:
  // By module, build-id and offset; a Python frame by all it has. `frames`: all that are at one address, never none. Those of
  // the first file that has names stay.
  const Site& of(std::vector<Frame> frames);
  // Fills functions, files and lines in from the modules on this machine, where the build-id agrees.
  void resolve();
  [[nodiscard]] bool needs_names() const;
  // Changes when sites have other frames than before.
  [[nodiscard]] uint64_t version() const { return version_; }

 private:
  std::unordered_map<std::string, Site> sites_;
  uint64_t version_ = 1;
};

}  // namespace xlog::tools
