#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tools/log/csv_line.h"
#include "tools/log/mapped_file.h"

namespace xlog::test {

namespace fs = std::filesystem;

TempFolder::TempFolder() {
  std::string name = (fs::temp_directory_path() / "xlog-test.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("mkdtemp");
  }
  path_ = name;
}

TempFolder::~TempFolder() {
  std::error_code error;
  fs::remove_all(path_, error);
}

std::vector<std::string> TempFolder::files() const {
  std::vector<std::string> names;
  for (const auto& each : fs::directory_iterator(path_)) {
    names.push_back(each.path().filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string build_folder() {
  const char* given = std::getenv("XLOG_BUILD");
  return fs::absolute(given != nullptr ? given : "build");
}

std::string program(const std::string& name) { return build_folder() + "/programs/" + name; }

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

void spit(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

namespace {

void read_both(int out, int err, Outcome& result) {
  pollfd fds[2] = {{out, POLLIN, 0}, {err, POLLIN, 0}};
  std::string* texts[2] = {&result.out, &result.err};
  for (int open = 2; open > 0;) {
    poll(fds, 2, -1);
    for (int i = 0; i < 2; ++i) {
      if (fds[i].fd >= 0 && fds[i].revents != 0) {
        char buffer[4096];
        ssize_t n = read(fds[i].fd, buffer, sizeof buffer);
        if (n > 0) {
          texts[i]->append(buffer, static_cast<size_t>(n));
        } else {
          close(fds[i].fd);
          fds[i].fd = -1;
          --open;
        }
      }
    }
  }
}

}  // namespace

Outcome run(const std::vector<std::string>& command, const Environment& environment, const std::string& folder) {
  std::vector<std::string> variables{"PATH=" + std::string(std::getenv("PATH")), "LD_LIBRARY_PATH=" + build_folder() + "/sim"};
  for (const auto& [name, value] : environment) {
    if (name == "LD_LIBRARY_PATH") {
      variables[1] = name + '=' + value;
    } else {
      variables.push_back(name + '=' + value);
    }
  }
  std::vector<char*> arguments;
  std::vector<char*> envp;
  for (const std::string& each : command) {
    arguments.push_back(const_cast<char*>(each.c_str()));
  }
  for (const std::string& each : variables) {
    envp.push_back(const_cast<char*>(each.c_str()));
  }
  arguments.push_back(nullptr);
  envp.push_back(nullptr);
  int out[2];
  int err[2];
  if (pipe2(out, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) {
    throw std::runtime_error("pipe");
  }
  pid_t child = fork();
  if (child == 0) {
    dup2(out[1], 1);
    dup2(err[1], 2);
    if (!folder.empty() && chdir(folder.c_str()) != 0) {
      _exit(126);
    }
    alarm(120);  // a test that hangs fails
    execvpe(arguments[0], arguments.data(), envp.data());
    _exit(127);
  }
  close(out[1]);
  close(err[1]);
  Outcome result;
  read_both(out[0], err[0], result);
  int status = 0;
  waitpid(child, &status, 0);
  result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

SmallDisk::SmallDisk(const std::string& path, const std::string& type, const std::string& options) : path_(path) {
  mounted_ = run({"mount", "-t", type, "-o", options, type, path}).status == 0;
}
SmallDisk::~SmallDisk() {
  if (mounted_) {
    run({"umount", "-l", path_});
  }
}

Outcome run_with_library(const std::vector<std::string>& command, Environment environment, const std::string& folder) {
  std::string& preload = environment["LD_PRELOAD"];
  preload = preload.empty() ? build_folder() + "/libxlog.so" : preload;
  return run(command, environment, folder);
}

std::vector<Row> rows_of(const std::string& csv) {
  MappedFile file(csv);
  std::vector<Row> rows;
  std::string_view text = file.text();
  CsvLine line;
  size_t at = text.find('\n');
  std::vector<std::string> header;
  if (at != text.npos && line.split(text.substr(0, at))) {
    for (size_t i = 0; i < line.size(); ++i) {
      header.emplace_back(line[i]);
    }
  }
  while (at != text.npos && ++at < text.size()) {
    size_t end = text.find('\n', at);
    std::string_view one = text.substr(at, end - at);
    if (!one.empty() && line.split(one)) {
      Row row;
      for (size_t i = 0; i < header.size(); ++i) {
        row[header[i]] = line[i];
      }
      rows.push_back(std::move(row));
    }
    at = end;
  }
  return rows;
}

std::string log_in(const TempFolder& folder) {
  for (const std::string& name : folder.files()) {
    if (name.ends_with(".csv") && !name.ends_with(".stacks.csv")) {
      return folder / name;
    }
  }
  return "";
}

size_t count(const std::vector<Row>& rows, const std::string& column, const std::string& value) {
  return static_cast<size_t>(std::count_if(rows.begin(), rows.end(), [&](const Row& row) {
    auto it = row.find(column);
    return it != row.end() && it->second == value;
  }));
}

}  // namespace xlog::test
