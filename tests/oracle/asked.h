// The built command, asked as users ask it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace xlog::oracle {

struct Answer {
  int status = 0;
  std::string out;
  [[nodiscard]] nlohmann::json json() const { return nlohmann::json::parse(out, nullptr, false); }
};

// `xlog` with these arguments; what it says on stderr is not kept.
Answer ask(const std::vector<std::string>& arguments);

// Figures that are not as they should be, with both.
class Differences {
 public:
  // `slack`: how far an estimate may be off.
  void same(const std::string& what, double said, double right, double slack = 0);
  void same(const std::string& what, const std::string& said, const std::string& right);
  void note(const std::string& what) { found_.push_back(what); }
  [[nodiscard]] bool none() const { return found_.empty(); }
  [[nodiscard]] std::string text() const;  // the first of them

 private:
  std::vector<std::string> found_;
};

// A folder with the generated logs of a seed, removed unless something is wrong with them (`keep`).
class GeneratedFolder {
 public:
  explicit GeneratedFolder(uint64_t seed);
  ~GeneratedFolder();
  GeneratedFolder(const GeneratedFolder&) = delete;
  GeneratedFolder& operator=(const GeneratedFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  std::string path_;
  bool kept_ = false;
};

// How many logs are made: XLOG_ORACLE_SEEDS, or `usual`.
uint64_t seeds(uint64_t usual);

}  // namespace xlog::oracle
