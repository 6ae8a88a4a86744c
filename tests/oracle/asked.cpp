#include "oracle/asked.h"

#include <sys/wait.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "oracle/generate.h"

namespace xlog::oracle {

Answer ask(const std::vector<std::string>& arguments) {
  const char* build = std::getenv("XLOG_BUILD");
  std::string command = std::string(build != nullptr ? build : "build") + "/xlog";
  for (const std::string& each : arguments) {
    command += " '" + each + '\'';
  }
  Answer answer;
  FILE* out = popen((command + " 2>/dev/null").c_str(), "r");
  if (out == nullptr) {
    throw std::runtime_error("popen");
  }
  char buffer[1 << 16];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof buffer, out)) > 0;) {
    answer.out.append(buffer, n);
  }
  int status = pclose(out);
  answer.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return answer;
}

void Differences::same(const std::string& what, double said, double right, double slack) {
  if (!(std::abs(said - right) <= slack)) {
    char text[80];
    std::snprintf(text, sizeof text, ": said %.17g, right %.17g", said, right);
    found_.push_back(what + text);
  }
}

void Differences::same(const std::string& what, const std::string& said, const std::string& right) {
  if (said != right) {
    found_.push_back(what + ": said " + said + ", right " + right);
  }
}

std::string Differences::text() const {
  constexpr size_t kTold = 8;
  std::string text;
  for (size_t i = 0; i < found_.size() && i < kTold; ++i) {
    text += "\n    " + found_[i];
  }
  return text + (found_.size() > kTold ? "\n    and " + std::to_string(found_.size() - kTold) + " more" : "");
}

GeneratedFolder::GeneratedFolder(uint64_t seed) {
  std::string name = (std::filesystem::temp_directory_path() / "xlog-oracle.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("mkdtemp");
  }
  path_ = name;
  generate(seed, path_);
}

GeneratedFolder::~GeneratedFolder() {
  std::error_code error;
  if (!kept_) {
    std::filesystem::remove_all(path_, error);
  }
}

uint64_t seeds(uint64_t usual) {
  const char* given = std::getenv("XLOG_ORACLE_SEEDS");
  return given != nullptr ? std::strtoull(given, nullptr, 10) : usual;
}

}  // namespace xlog::oracle
