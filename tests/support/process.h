// Runs a program and keeps what it said and left: for the tests that put the real library into real processes.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace xlog::test {

using Environment = std::map<std::string, std::string>;

struct Outcome {
  int status = 0;  // exit status, or 128 + signal
  std::string out;
  std::string err;
};

// A folder that is removed with its contents.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string operator/(const std::string& name) const { return path_ + '/' + name; }
  [[nodiscard]] std::vector<std::string> files() const;  // names, sorted

 private:
  std::string path_;
};

// A file system of its own; needs to be allowed to mount.
class SmallDisk {
 public:
  SmallDisk(const std::string& path, const std::string& type, const std::string& options);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;
  [[nodiscard]] bool mounted() const { return mounted_; }

 private:
  std::string path_;
  bool mounted_ = false;
};

std::string build_folder();               // where the products are
std::string program(const std::string&);  // a test program's path
std::string slurp(const std::string& path);
void spit(const std::string& path, const std::string& text);

// `environment` replaces the inherited one but for PATH; the simulated driver is found. `folder` is the current folder.
Outcome run(const std::vector<std::string>& command, const Environment& environment = {}, const std::string& folder = "");
// The same with the library preloaded.
Outcome run_with_library(const std::vector<std::string>& command, Environment environment = {}, const std::string& folder = "");

// Rows of a log as maps by column, through the project's reader.
using Row = std::map<std::string, std::string>;
std::vector<Row> rows_of(const std::string& csv);
std::string log_in(const TempFolder& folder);  // the one .csv that is no stacks file
// Counts rows with column == value.
size_t count(const std::vector<Row>& rows, const std::string& column, const std::string& value);

}  // namespace xlog::test
