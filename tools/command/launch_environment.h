// What `xlog run` and `xlog env` set for a program: the library in LD_PRELOAD, and its options.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace xlog::tools {

struct LaunchOptions {
  std::map<std::string, std::string> values;  // variables of the library, by the flags that were given
  std::string folder;                         // -o: where the log goes
  bool per_tensor = false;                    // the framework's own cache off, and a fast backend in its place
  bool no_log = false;
  bool quiet = false;
  std::vector<std::string> command;
};

// Absolute path of libxlog.so: beside this command, or in ../lib; empty when it is nowhere.
std::string library_path();
// Why the library cannot be preloaded from where it is; empty when it can.
std::string library_trouble();

// Text of a variable, or "".
std::string variable(const char* name);

using Variables = std::vector<std::pair<std::string, std::string>>;
// For LD_PRELOAD: the library before what `given` has, but for a sanitizer's runtime, which has to be the first.
std::string preload_list(const std::vector<std::string>& command, std::string given);
// All but LD_PRELOAD and a log folder that is still to be made, in the order to set them.
Variables launch_variables(const LaunchOptions& options);
// Neither a flag nor the environment says where the log goes, or that there is to be none.
bool needs_log_folder(const LaunchOptions& options);

// "XLOG_BUDGET=8G of the environment applies": the library's variables that no flag replaces. Empty when there is none.
std::string inherited_text(const Variables& replaced);

// Complaints about the variables in force: unreadable values, and unknown XLOG_ names. False when there is any.
bool check_environment(std::vector<std::string>& complaints);

}  // namespace xlog::tools
