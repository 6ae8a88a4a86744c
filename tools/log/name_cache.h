// The names of one file's addresses from earlier reports, in $XDG_CACHE_HOME/xlog or ~/.cache/xlog: looking names up in a
// library of PyTorch's size takes seconds.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/log/inlined.h"

namespace xlog::tools {

class NameCache {
 public:
  // What is there of the file with this build-id, as it now is at `path`. Nothing when it has no build-id, when the cache is
  // damaged, of another version, or could have been written by another user.
  NameCache(const std::string& path, const std::string& build_id);

  [[nodiscard]] const std::vector<CodeName>* find(uint64_t offset) const;
  const std::vector<CodeName>& add(uint64_t offset, std::vector<CodeName> names);
  // What was added, for the next report. No trouble of the cache's is one of the report's: nothing is said.
  void write() const;

 private:
  void read(int folder);

  std::string name_;  // of the cache's file; empty: there is no cache
  std::map<uint64_t, std::vector<CodeName>> names_;
  bool changed_ = false;
};

}  // namespace xlog::tools
