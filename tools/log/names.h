// Texts as numbers, as many rows have the same; 0 is the empty one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace xlog::tools {

class Names {
 public:
  uint32_t number(std::string_view text) {
    if (text == names_[last_]) {
      return last_;
    }
    auto [it, fresh] = numbers_.try_emplace(std::string(text), static_cast<uint32_t>(names_.size()));
    if (fresh) {
      names_.emplace_back(text);
    }
    return last_ = it->second;
  }
  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] const std::string& name(uint32_t number) const { return names_[number]; }

 private:
  std::vector<std::string> names_{""};
  std::unordered_map<std::string, uint32_t> numbers_{{"", 0}};
  uint32_t last_ = 0;
};

}  // namespace xlog::tools
