#include "tools/log/missing_log.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "tools/log/text_file.h"

namespace xlog::tools {

namespace {

// False, with errno, when the folder cannot be read.
bool read_names(const std::string& folder, std::vector<std::string>& names) {
  DIR* open = opendir(folder.c_str());
  if (open == nullptr) {
    return false;
  }
  while (const dirent* each = readdir(open)) {
    std::string name = each->d_name;
    if (name != "." && name != "..") {
      names.push_back(name);
    }
  }
  closedir(open);
  std::sort(names.begin(), names.end());
  return true;
}

bool is_log_name(const std::string& name) { return name.ends_with(".csv") && !name.ends_with(".stacks.csv"); }

bool is_run(const std::string& folder) {
  std::vector<std::string> names;
  return special_file(folder) == "a folder" && read_names(folder, names) && std::any_of(names.begin(), names.end(), is_log_name);
}

std::string why_none_in(const std::string& folder) {
  std::vector<std::string> names;
  if (!read_names(folder, names)) {
    return folder + ": the folder cannot be read: " + std::strerror(errno);
  }
  if (names.empty()) {
    return folder + ": the folder is empty";
  }
  std::string within = folder.ends_with('/') ? folder : folder + '/';
  std::string run;
  size_t runs = 0;
  for (const std::string& each : names) {
    if (is_log_name(each) && access((within + each).c_str(), R_OK) != 0) {
      return within + each + ": the log cannot be read: " + std::strerror(errno);
    }
    if (is_run(within + each)) {
      run = run.empty() ? within + each : run;
      ++runs;
    }
  }
  if (runs != 0) {
    return folder + ": no log is in the folder itself, but in " + std::to_string(runs) + (runs == 1 ? " folder" : " folders") +
           " below it: name one, such as " + run;
  }
  return folder + (names.size() == 1 ? ": the one file in the folder is no log"
                                     : ": none of the " + std::to_string(names.size()) + " files in the folder is a log");
}

}  // namespace

std::string why_no_log(const std::string& name) {
  struct stat info {};
  if (stat(name.c_str(), &info) != 0) {
    return name + ": " + (errno == ENOENT ? "no such file or folder" : std::strerror(errno));
  }
  std::string special = special_file(name);
  return special == "a folder" ? why_none_in(name) : name + " is " + special + ", not a log";
}

}  // namespace xlog::tools
