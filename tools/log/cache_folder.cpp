#include "tools/log/cache_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

namespace xlog::tools {

namespace {

constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

std::string parent_of_cache() {
  const char* given = std::getenv("XDG_CACHE_HOME");
  if (given != nullptr && *given == '/') {  // a relative one is to be ignored
    return given;
  }
  const char* home = std::getenv("HOME");
  return home != nullptr && *home == '/' ? std::string(home) + "/.cache" : "";
}

bool write_all(int fd, const std::string& text) {
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = write(fd, text.data() + done, text.size() - done);
    if (n <= 0) {
      return false;
    }
    done += static_cast<size_t>(n);
  }
  return true;
}

}  // namespace

int open_cache_folder() {
  std::string parent = parent_of_cache();
  if (parent.empty()) {
    return -1;
  }
  std::string path = parent + "/xlog";
  mkdir(parent.c_str(), 0700);
  mkdir(path.c_str(), 0700);
  int fd = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  struct stat info {};
  if (fd >= 0 && (fstat(fd, &info) != 0 || info.st_uid != geteuid() || (info.st_mode & kOthersWrite) != 0)) {
    close(fd);
    return -1;
  }
  return fd;
}

std::optional<std::string> read_cache_file(int folder, const std::string& name, size_t limit) {
  int fd = openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) {
    return std::nullopt;
  }
  struct stat info {};
  bool good = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() && (info.st_mode & kOthersWrite) == 0 &&
              static_cast<size_t>(info.st_size) <= limit;
  std::string text(good ? static_cast<size_t>(info.st_size) : 0, '\0');
  size_t done = 0;
  while (done < text.size()) {
    ssize_t n = read(fd, text.data() + done, text.size() - done);
    if (n <= 0) {
      break;
    }
    done += static_cast<size_t>(n);
  }
  close(fd);
  return good && done == text.size() ? std::optional(std::move(text)) : std::nullopt;
}

void write_cache_file(int folder, const std::string& name, const std::string& text) {
  std::string fresh = name + ".new." + std::to_string(getpid());
  unlinkat(folder, fresh.c_str(), 0);
  int fd = openat(folder, fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) {
    return;
  }
  bool good = write_all(fd, text);
  good = close(fd) == 0 && good;
  if (!good || renameat(folder, fresh.c_str(), folder, name.c_str()) != 0) {
    unlinkat(folder, fresh.c_str(), 0);
  }
}

void trim_cache(int folder, size_t limit) {
  struct Entry {
    time_t time;
    std::string name;
    size_t size;
  };
  std::vector<Entry> files;
  size_t sum = 0;
  int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = again >= 0 ? fdopendir(again) : nullptr;
  if (listing == nullptr) {
    if (again >= 0) {
      close(again);
    }
    return;
  }
  for (const dirent* each = readdir(listing); each != nullptr; each = readdir(listing)) {
    struct stat info {};
    if (fstatat(folder, each->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(info.st_mode)) {
      files.push_back({info.st_mtim.tv_sec, each->d_name, static_cast<size_t>(info.st_size)});
      sum += files.back().size;
    }
  }
  closedir(listing);
  std::sort(files.begin(), files.end(), [](const Entry& a, const Entry& b) { return a.time < b.time; });
  for (size_t i = 0; i < files.size() && sum > limit; ++i) {
    unlinkat(folder, files[i].name.c_str(), 0);
    sum -= files[i].size;
  }
}

}  // namespace xlog::tools
