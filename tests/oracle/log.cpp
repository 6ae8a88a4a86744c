#include "oracle/log.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace xlog::oracle {

namespace {

using Fields = std::map<std::string, std::string>;

Number number(const std::string& text) {
  if (text.empty()) {
    return {};
  }
  return std::stoull(text, nullptr, text.starts_with("0x") ? 16 : 10);
}

// "hh:mm:ss.uuuuuu" in ns; the day is not in the file.
uint64_t time_of_day(const std::string& text) {
  uint64_t seconds = std::stoull(text.substr(0, 2)) * 3600 + std::stoull(text.substr(3, 2)) * 60 + std::stoull(text.substr(6, 2));
  return seconds * 1'000'000'000 + std::stoull(text.substr(9, 6)) * 1000;
}

Row row_of(Fields& fields) {
  Row row;
  row.action = fields["action"];
  row.tag = fields["tag"];
  row.query = fields["query_id"];
  row.kind = fields["kind"];
  row.api = fields["api"];
  row.result = fields["result"];
  row.message = fields["message"];
  row.thread_name = fields["thread_name"];
  row.thread = number(fields["thread"]);
  row.time = number(fields["time"]);
  row.ptr = number(fields["ptr"]);
  row.bytes = number(fields["bytes"]);
  row.stream = number(fields["stream"]);
  row.device = number(fields["device"]);
  row.generation = number(fields["generation"]);
  row.elapsed_ns = number(fields["elapsed_ns"]);
  row.stack_id = number(fields["stack_id"]);
  return row;
}

// A row of RMM's, as our own would be. Its blocks have no number: one is counted for each address.
Row row_of_rmm(Fields& fields, uint64_t& day, uint64_t& last) {
  Row row;
  row.thread = number(fields["Thread"]);
  uint64_t time = time_of_day(fields["Time"]);
  day += time < last ? uint64_t{86'400} * 1'000'000'000 : 0;
  last = time;
  row.time = day + time;
  bool failed = fields["Action"] == "allocate failure";
  row.action = fields["Action"] == "free" ? "deallocate" : "allocate";
  row.result = failed ? "CUDA_ERROR_OUT_OF_MEMORY" : "ok";
  row.ptr = failed ? Number{} : number(fields["Pointer"]);
  row.bytes = number(fields["Size"]);
  row.stream = number(fields["Stream"]);
  row.device = 0;
  return row;
}

void read_stacks(const std::string& path, Log& log) {
  auto lines = read_csv(file_text(path));
  for (size_t i = 1; i < lines.size(); ++i) {
    const auto& f = lines[i];
    log.stacks[*number(f.at(0))].push_back({f.at(2), f.at(3), f.at(4), f.at(5), f.at(6), f.at(7)});
  }
}

void read_run_info(const std::string& path, Log& log) {
  nlohmann::json info = nlohmann::json::parse(file_text(path), nullptr, false);
  if (!info.is_object()) {
    return;
  }
  log.pid = info.value("pid", uint64_t{0});
  log.start_ns = info.value("start_ns", uint64_t{0});
  log.host = info.value("host", "");
  if (info.contains("ended_ns")) {
    log.ended_ns = info["ended_ns"].get<uint64_t>();
  }
  for (const auto& gpu : info["gpus"]) {
    log.devices[gpu["ordinal"]] = {gpu["uuid"], gpu["total_bytes"]};
  }
  std::string sample = info["options"].value("XLOG_LOG_SAMPLE", "0");
  log.sample = std::stoull(sample) << (sample.find('K') != sample.npos ? 10 : 0);
}

}  // namespace

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::vector<std::vector<std::string>> read_csv(const std::string& text) {
  std::vector<std::vector<std::string>> lines;
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (quoted && c == '"' && i + 1 < text.size() && text[i + 1] == '"') {
      fields.back() += text[++i];
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c == '\n' && !quoted) {
      if (fields.size() > 1 || !fields[0].empty()) {
        lines.push_back(fields);
      }
      fields.assign(1, "");
    } else {
      fields.back() += c;
    }
  }
  return lines;  // what follows the last end of a line is no row
}

Log read_log(const std::string& csv) {
  Log log;
  log.csv = csv;
  auto lines = read_csv(file_text(csv));
  std::string stem = csv.substr(0, csv.size() - 4);
  read_run_info(stem + ".run.json", log);
  read_stacks(stem + ".stacks.csv", log);
  uint64_t day = 0;
  uint64_t last = 0;
  for (size_t i = 1; i < lines.size(); ++i) {
    if (lines[i].size() == lines[0].size()) {
      Fields fields;
      for (size_t k = 0; k < lines[0].size(); ++k) {
        fields[lines[0][k]] = lines[i][k];
      }
      log.rows.push_back(fields.contains("Action") ? row_of_rmm(fields, day, last) : row_of(fields));
    }
  }
  return log;
}

std::vector<Log> read_folder(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::string name = entry.path();
    if (name.ends_with(".csv") && !name.ends_with(".stacks.csv")) {
      names.push_back(name);
    }
  }
  std::sort(names.begin(), names.end());
  std::vector<Log> logs;
  for (const std::string& each : names) {
    logs.push_back(read_log(each));
  }
  return logs;
}

}  // namespace xlog::oracle
