#include "tools/command/log_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "runtime/base/options.h"

namespace xlog::tools {

namespace fs = std::filesystem;

namespace {

// The library takes a path of so many bytes, and adds the program's name and the pid.
constexpr size_t kLongestFolder = 700;
constexpr size_t kLongestProgram = 100;

std::string local_time() {
  time_t now = time(nullptr);
  tm parts{};
  localtime_r(&now, &parts);
  char text[32];
  strftime(text, sizeof text, "%Y%m%d-%H%M%S", &parts);
  return text;
}

std::string own_name(const std::string& program) {
  std::string name;
  for (char c : program.substr(0, kLongestProgram)) {
    name += static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '/' ? '_' : c;
  }
  return "xlog." + name + '.' + local_time();
}

// Why no folder could be made in `parent`. Some file systems say "No such file" where they mean that they take none.
std::string reason_of(int error, const fs::path& parent) {
  std::error_code ignored;
  if (error == ENOENT && fs::is_directory(parent, ignored)) {
    return access(parent.c_str(), W_OK) != 0 ? std::strerror(errno) : "no folder can be made there";
  }
  return std::strerror(error);
}

// With mode 0700 exactly: the umask may take the owner's own bits, and a mode that is set later could be set for what was put in its
// place meanwhile. 0 or errno.
int make_private(int parent, const std::string& name) {
  mode_t before = umask(0);
  int error = mkdirat(parent, name.c_str(), 0700) == 0 ? 0 : errno;
  umask(before);
  return error;
}

// Makes `name`, or `name.1` and so on, in an open folder: mkdir takes nothing that is there, be it a link.
int make_numbered(int parent, const std::string& name, std::string& made) {
  for (int i = 0; i < 10'000; ++i) {
    made = i == 0 ? name : name + '.' + std::to_string(i);
    int error = make_private(parent, made);
    if (error != EEXIST) {
      return error;
    }
  }
  return EEXIST;
}

int open_folder(const fs::path& path) { return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC); }

bool is_only_ours(int fd) {
  struct stat info {};
  return fstat(fd, &info) == 0 && info.st_uid == geteuid() && (info.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::string in_state_folder(const std::string& name) {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  fs::path base = state != nullptr && *state == '/' ? fs::path(state)
                  : home != nullptr && *home == '/' ? fs::path(home) / ".local/state"
                                                    : "";
  if (base.empty()) {
    return "";
  }
  base /= "xlog";
  fs::path above;
  for (const fs::path& each : base) {
    above /= each;
    make_private(AT_FDCWD, above);
  }
  int fd = open_folder(base);
  std::string made;
  bool good = fd >= 0 && is_only_ours(fd) && make_numbered(fd, name, made) == 0;
  if (fd >= 0) {
    close(fd);
  }
  return good ? base / made : "";
}

// mkdtemp makes the folder itself, under a name that nobody can have foreseen.
std::string in_tmp(const std::string& name) {
  std::string path = "/tmp/" + name + ".XXXXXX";
  return mkdtemp(path.data()) != nullptr ? path : "";
}

LogFolder elsewhere(const std::string& name, const std::string& why) {
  for (auto make : {in_state_folder, in_tmp}) {
    std::string path = make(name);
    if (!path.empty() && path.size() <= kLongestFolder) {
      return {.path = path, .fresh = true, .note = why + ": the log goes to " + path};
    }
  }
  return {.path = "", .note = why + ", nor in the state folder, nor in /tmp"};
}

}  // namespace

LogFolder make_log_folder(const std::string& program) {
  std::string name = own_name(program);
  std::error_code error;
  fs::path here = fs::current_path(error);
  if (error) {
    return elsewhere(name, "the current folder is gone (" + error.message() + ")");
  }
  if (here.native().size() + name.size() > kLongestFolder) {
    return elsewhere(name, "the path of the current folder is too long for a log");
  }
  std::string made;
  int failed = make_numbered(AT_FDCWD, name, made);
  if (failed == 0) {
    return {.path = here / made, .fresh = true, .note = ""};
  }
  return elsewhere(name, "no log folder can be made in " + here.native() + " (" + reason_of(failed, here) + ')');
}

LogFolder use_log_folder(const std::string& wanted, const std::string& program) {
  std::error_code error;
  fs::path path = fs::absolute(wanted, error).lexically_normal();
  if (!path.has_filename()) {
    path = path.parent_path();
  }
  int failed = error ? error.value() : path.native().size() > kLongestFolder ? ENAMETOOLONG : 0;
  fs::path parent = path.parent_path();
  if (failed == 0 && !fs::exists(parent, error)) {
    fs::path above;
    for (const fs::path& each : parent) {
      above /= each;
      failed = make_private(AT_FDCWD, above);
      if (failed != 0 && failed != EEXIST) {
        break;
      }
      failed = 0;
    }
  }
  if (failed == 0) {
    failed = make_private(AT_FDCWD, path);
    if (failed == 0) {
      return {.path = path, .fresh = true, .note = ""};
    }
  }
  if (failed == EEXIST) {
    failed = !fs::is_directory(path, error) ? ENOTDIR : access(path.c_str(), W_OK | X_OK) != 0 ? errno : 0;
  }
  if (failed == 0) {
    return {.path = path, .fresh = false, .note = ""};
  }
  return elsewhere(own_name(program), "no log can be written in " + path.native() + " (" + reason_of(failed, parent) + ')');
}

std::string literal_pattern(const std::string& text) {
  std::string out;
  for (char c : text) {
    out += c == '%' ? "%%" : std::string(1, c);
  }
  return out;
}

}  // namespace xlog::tools
