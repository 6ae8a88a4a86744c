// `xlog run`: starts a program under the library, stays its parent, and ends with the answer.
#pragma once

#include <string>
#include <vector>

namespace xlog::tools {

struct LaunchOptions {
  std::string limit;        // XLOG_BUDGET
  std::string backend;      // XLOG_BACKEND
  bool per_tensor = false;  // the framework's own cache off, and a fast backend in its place
  bool no_log = false;
  bool quiet = false;
  std::vector<std::string> command;
};

// Absolute path of libxlog.so: beside this command, or in ../lib; empty when it is nowhere.
std::string library_path();
// Why the library cannot be preloaded from where it is; empty when it can.
std::string library_trouble();

// Variables for the program: name and value, in the order to set them. The log folder is absolute.
std::vector<std::pair<std::string, std::string>> launch_environment(const LaunchOptions& options, std::string& log_folder);

// Complaints about the options in force: unreadable values, and unknown XLOG_ names. False when one is fatal.
bool check_environment(std::vector<std::string>& complaints);

// Returns the exit status to end with; a program killed by a signal is followed in that too.
int launch(const LaunchOptions& options);

}  // namespace xlog::tools
