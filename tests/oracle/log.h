// A second reader of logs: simple, slow, and without a line of the first. It knows the columns by name, from the README.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace xlog::oracle {

using Number = std::optional<uint64_t>;

struct Row {
  std::string action;
  std::string tag;
  std::string query;
  std::string kind;
  std::string api;
  std::string result;
  std::string message;
  std::string thread_name;
  Number thread;
  Number time;
  Number ptr;
  Number bytes;
  Number stream;
  Number device;
  Number generation;
  Number elapsed_ns;
  Number stack_id;
};

struct Frame {
  std::string module;
  std::string build_id;
  std::string offset;
  std::string function;
  std::string file;
  std::string line;
};

struct Device {
  std::string uuid;
  uint64_t total = 0;
};

// What one process has left.
struct Log {
  std::string csv;
  uint64_t pid = 0;
  uint64_t start_ns = 0;
  std::string host;
  Number ended_ns;      // its wait status, where `xlog run` recorded one
  uint64_t sample = 0;  // XLOG_LOG_SAMPLE
  std::map<uint64_t, Device> devices;
  std::map<uint64_t, std::vector<Frame>> stacks;  // innermost first
  std::vector<Row> rows;                          // in the order of the file
};

// All logs of a folder in the order of their names.
std::vector<Log> read_folder(const std::string& folder);
Log read_log(const std::string& csv);

// The fields of RFC 4180 text, line by line; empty lines are left out.
std::vector<std::vector<std::string>> read_csv(const std::string& text);
std::string file_text(const std::string& path);

}  // namespace xlog::oracle
