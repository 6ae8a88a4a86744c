#include "tools/command/control.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

#include "runtime/record/log_switch.h"

namespace xlog::tools {

namespace {

// A page of ours that another process has mapped, through the file behind it.
class Page {
 public:
  explicit Page(const std::string& path) : fd_(open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {}
  ~Page() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  Page(const Page&) = delete;
  Page& operator=(const Page&) = delete;

  [[nodiscard]] bool good() const {
    char magic[sizeof ControlPage::magic] = {};
    return fd_ >= 0 && pread(fd_, magic, sizeof magic, 0) == sizeof magic && ControlPage::kMagic == std::string_view(magic, sizeof magic);
  }
  bool want(bool on) const {
    uint32_t word = on ? 1 : 0;
    return pwrite(fd_, &word, sizeof word, offsetof(ControlPage, wanted)) == sizeof word;
  }
  [[nodiscard]] bool serves(bool on) const {
    uint32_t word = 0;
    return pread(fd_, &word, sizeof word, offsetof(ControlPage, serving)) == sizeof word && (word != 0) == on;
  }

 private:
  int fd_;
};

// In the process's own view of the files. A program may have mapped other files whose names end so.
std::vector<std::string> control_files(std::istream& maps) {
  std::vector<std::string> found;
  std::string line;
  while (std::getline(maps, line)) {
    size_t path = line.find('/');
    if (path != std::string::npos && line.ends_with(ControlPage::kSuffix)) {
      found.push_back(line.substr(path));
    }
  }
  return found;
}

}  // namespace

bool switch_log(unsigned pid, bool on, std::string& said) {
  using namespace std::chrono_literals;
  const std::string process = "/proc/" + std::to_string(pid);
  said = "process " + std::to_string(pid) + ": ";
  std::ifstream maps(process + "/maps");
  int error = errno;
  std::vector<std::string> files = control_files(maps);
  if (files.empty()) {
    said += access(process.c_str(), F_OK) != 0 ? "there is none"
            : !maps.is_open()                  ? std::strerror(error)
                              : "no log to switch: not started under the library with XLOG_LOG, or it has made no device memory yet";
    return false;
  }
  auto root = [&process](const std::string& file) { return process + "/root" + file; };
  auto ours = std::find_if(files.begin(), files.end(), [&](const std::string& each) {
    Page candidate(root(each));
    return candidate.good() && candidate.want(on);
  });
  if (ours == files.end()) {
    said += files.front() + " cannot be written";
    return false;
  }
  const std::string& path = *ours;
  Page page(root(path));
  for (int i = 0; i < 100 && !page.serves(on); ++i) {
    std::this_thread::sleep_for(10ms);
  }
  std::string log = path.substr(0, path.size() - ControlPage::kSuffix.size()) + ".csv";
  said += page.serves(on) ? "the log " + log + " is " : "at its next call that makes or ends memory the log " + log + " will be ";
  said += on ? "on" : "off";
  return true;
}

}  // namespace xlog::tools
