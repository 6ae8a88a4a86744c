#include "oracle/generated_process.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>

namespace xlog::oracle {

namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kTotal = uint64_t{80} << 30;
const char* const kHeader =
    "thread,time,action,ptr,bytes,stream,device,tag,query_id,seq,generation,kind,api,result,message,live_bytes,elapsed_ns,stack_id,"
    "thread_name\n";

std::string hex(uint64_t n) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%lx", n);
  return text;
}

// As in the rows of frees, which are begun before the call and finished after it.
std::string padded(uint64_t n) {
  char text[24];
  std::snprintf(text, sizeof text, "%012lu", n);
  return text;
}

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"") == text.npos) {
    return text;
  }
  std::string out = "\"";
  for (char c : text) {
    out += c == '"' ? "\"\"" : std::string(1, c);
  }
  return out + '"';
}

std::string uuid_of(uint64_t gpu) { return "GPU-0000000" + std::to_string(gpu) + "-1415-1617-1819-1a1b1c1d1e1f"; }

bool on_gpu(const std::string& kind) { return kind != "host" && kind != "import"; }

}  // namespace

GeneratedProcess::GeneratedProcess(const Plan& plan, uint64_t seed) : plan_(plan), random_(seed), now_(plan.start) {
  threads_ = plan_.sort == Sort::rmm ? 1 : 1 + below(3);
  sample_ = plan_.sort == Sort::sampled ? 65536 : 0;
  on_ = plan_.sort != Sort::switched || below(4) != 0;
}

// A thread's times never go back; those of two threads may stand a little out of order.
void GeneratedProcess::tick() {
  thread_ = below(threads_);
  uint64_t step = below(20) == 0 ? below(3'000'000) : 1000 + below(100'000);
  now_ += step;
  uint64_t own = now_ - (below(4) == 0 ? below(step) : 0);
  uint64_t& last = thread_time_[thread()];
  last = std::max({last + 1, own, plan_.start});
  latest_ = std::max(latest_, last);
}

void GeneratedProcess::put(const Fields& f) {
  uint64_t time = thread_time_[thread()];
  std::string name = f.bare ? "" : thread_ == 0 ? "train" : "wo,rk\"er" + std::to_string(thread_);
  static const char* const kTags[] = {"", "train", "train/layer", "a \"tag\", quoted"};
  std::string tag = f.bare ? "" : kTags[(plan_.pid + seq_ / 9) % 4];
  std::string query = f.bare || (seq_ / 25) % 2 == 0 ? "" : "q" + std::to_string(plan_.pid % 3);
  std::string row = std::to_string(thread()) + ',' + std::to_string(time) + ',' + f.action + ',' + f.ptr + ',' + f.bytes;
  row += ',' + f.stream + ',' + f.device + ',' + csv_field(tag) + ',' + query + ',' + std::to_string(++seq_) + ',' + f.generation + ',';
  row += f.kind + ',' + f.api + ',' + f.result + ',' + csv_field(f.message) + ',' + f.live + ',' + f.elapsed + ',' + f.stack + ',' +
         csv_field(name);
  rows_.push_back(row + '\n');
}

bool GeneratedProcess::sampled_out(uint64_t bytes) {
  bool out = bytes != 0 && bytes < sample_ && below(sample_) >= bytes;
  left_out_ += out ? 1 : 0;
  left_out_bytes_ += out ? bytes : 0;
  return out;
}

// An address that a block of this size has left, often; else one that none has had.
uint64_t GeneratedProcess::address(uint64_t device, uint64_t bytes) {
  auto hole = holes_.find(device << 60 | bytes);
  if (hole != holes_.end() && below(4) != 0) {
    uint64_t ptr = hole->second;
    holes_.erase(hole);
    return ptr;
  }
  // Blocks above 1 MiB have pages of their own.
  bool large = bytes > kMiB;
  uint64_t& top = top_[device << 1 | (large ? 1 : 0)];
  top = top == 0 ? 0x7f0000000000 + (device << 36) + (large ? uint64_t{1} << 35 : 0) : top;
  uint64_t ptr = top;
  uint64_t step = large ? 2 * kMiB : 512;
  top += std::max<uint64_t>((bytes + step - 1) / step * step, step);
  return ptr;
}

std::string GeneratedProcess::device_text(const Block& block) const { return on_gpu(block.kind) ? std::to_string(block.device) : ""; }

std::string GeneratedProcess::live_text(const Block& block) {
  return std::to_string(live_bytes_[on_gpu(block.kind) ? std::to_string(block.device) : block.kind]);
}

void GeneratedProcess::allocate() { allocate_at(0, ""); }

// `ptr`: where a block of that kind was freed out of sight; 0: anywhere.
void GeneratedProcess::allocate_at(uint64_t ptr, const std::string& kind, uint64_t device, uint64_t bytes) {
  struct Way {
    const char* kind;
    const char* api;
    const char* api_of_free;
  };
  static const Way kWays[] = {{"plain", "cuMemAlloc_v2", "cuMemFree_v2"},
                              {"plain", "cuMemAlloc_v2", "cuMemFree_v2"},
                              {"async", "cuMemAllocAsync", "cuMemFreeAsync"},
                              {"pool", "cuMemAllocFromPoolAsync", "cuMemFreeAsync"},
                              {"managed", "cuMemAllocManaged", "cuMemFree_v2"},
                              {"pitch", "cuMemAllocPitch_v2", "cuMemFree_v2"},
                              {"vmm", "cuMemCreate", "cuMemRelease"},
                              {"array", "cuArrayCreate_v2", "cuArrayDestroy"},
                              {"host", "cuMemHostAlloc", "cuMemFreeHost"},
                              {"graph", "cuGraphLaunch", "cuDeviceGraphMemTrim"},
                              {"import", "cuIpcOpenMemHandle_v2", "cuIpcCloseMemHandle"}};
  bool simple = plan_.sort == Sort::pages || plan_.sort == Sort::rmm;
  const Way* way = &kWays[simple ? 0 : below(std::size(kWays))];
  way = kind.empty() ? way : std::find_if(std::begin(kWays), std::end(kWays), [&](const Way& each) { return each.kind == kind; });
  Block block;
  block.kind = way->kind;
  block.api_of_free = way->api_of_free;
  block.bytes = below(3) == 0 ? 1 + below(3000) : below(2) == 0 ? 512 << below(16) : (1 + below(16)) * kMiB;
  if (block.kind == "vmm") {
    block.bytes = (1 + below(8)) * 2 * kMiB;
  }
  block.generation = ++generation_;
  block.bytes = ptr != 0 ? bytes : block.bytes;
  block.device = ptr != 0 ? device : on_gpu(block.kind) ? below(plan_.gpus) : 0;
  block.stream = block.kind == "async" || block.kind == "pool" ? hex(below(3)) : "";
  block.stack = std::to_string(1 + below(6));
  if (block.kind == "vmm") {
    block.ptr = 0x550000000000 + generation_ * 0x10;
  } else if (block.kind == "graph") {
    block.ptr = 0x8000000000000000 + generation_;
  } else if (block.kind == "array") {
    block.ptr = 0x560000000000 + generation_ * 0x1000;
  } else if (ptr != 0) {
    block.ptr = ptr;
  } else {
    block.ptr = address(on_gpu(block.kind) ? block.device : 4, std::max<uint64_t>(block.bytes, 1));
  }
  live_bytes_[on_gpu(block.kind) ? std::to_string(block.device) : block.kind] += block.bytes;
  block.logged = on_ && !sampled_out(block.bytes);
  if (block.logged) {
    put({"allocate", hex(block.ptr), std::to_string(block.bytes), block.stream, device_text(block), std::to_string(block.generation),
         block.kind, way->api, "ok", "", live_text(block), std::to_string(200 + below(20'000)), block.stack});
  }
  live_.push_back(block);
}

void GeneratedProcess::be_refused() {
  bool driver = below(2) == 0;
  if (on_) {
    put({"allocate", "", std::to_string(uint64_t{1} << (30 + below(8))), "", std::to_string(below(plan_.gpus)), "", "plain",
         "cuMemAlloc_v2", "CUDA_ERROR_OUT_OF_MEMORY",
         driver ? "CUDA driver error 2: CUDA_ERROR_OUT_OF_MEMORY" : "out of budget: current 1 bytes, limit 2 bytes", "0",
         std::to_string(200 + below(2000)), std::to_string(1 + below(6))});
  }
}

void GeneratedProcess::end_block(size_t which, const std::string& how) {
  Block block = live_[which];
  live_.erase(live_.begin() + static_cast<long>(which));
  live_bytes_[on_gpu(block.kind) ? std::to_string(block.device) : block.kind] -= block.bytes;
  if (block.ptr >= 0x7f0000000000 && block.ptr < 0x8000000000000000) {
    holes_.emplace((on_gpu(block.kind) ? block.device : 4) << 60 | block.bytes, block.ptr);
  }
  if (!on_ || !block.logged) {
    return;
  }
  bool freed = how == "deallocate";
  put({how, hex(block.ptr), std::to_string(block.bytes), block.stream, device_text(block), std::to_string(block.generation), block.kind,
       freed ? block.api_of_free : "cuCtxDestroy_v2", "ok", "", live_text(block), padded(freed ? 200 + below(50'000) : 0),
       freed ? std::to_string(below(8) == 0 ? 8 : 7) : ""});
}

// A free that fails: its place was taken before it was known to.
void GeneratedProcess::fail_to_free(const Block& block) {
  if (!on_ || !block.logged || block.kind != "managed") {
    return;
  }
  Fields place;
  place.action = "retracted";
  place.ptr = hex(block.ptr);
  place.bare = true;
  put(place);
  put({"deallocate", hex(block.ptr), std::to_string(block.bytes), "0x0", device_text(block), std::to_string(block.generation), block.kind,
       "cuMemFreeAsync", "CUDA_ERROR_NOT_SUPPORTED", "CUDA driver error 801: CUDA_ERROR_NOT_SUPPORTED", live_text(block),
       std::to_string(200 + below(2000)), "7"});
}

// Freed on a way that is not covered: its address comes back from the driver, in a block of the same size.
void GeneratedProcess::be_freed_unseen(size_t which) {
  Block old = live_[which];
  if (!on_ || !old.logged || old.kind != "plain" || sample_ != 0) {
    return;
  }
  live_.erase(live_.begin() + static_cast<long>(which));
  allocate_at(old.ptr, "plain", old.device, old.bytes);
  live_bytes_[std::to_string(old.device)] -= old.bytes;
  put({"ended_unseen", hex(old.ptr), std::to_string(old.bytes), old.stream, device_text(old), std::to_string(old.generation), old.kind, "",
       "ok", "", live_text(old), "", ""});
}

// Of memory that was made out of sight, or that is none.
void GeneratedProcess::free_unknown() {
  if (on_) {
    put({"deallocate", hex(0x600000000000 + below(1000) * 512), "", "", "", "", "foreign", "cuMemFree_v2",
         below(2) == 0 ? "ok" : "CUDA_ERROR_INVALID_VALUE", "", "", std::to_string(200 + below(2000)), "7"});
  }
}

void GeneratedProcess::look_at_driver() {
  if (on_) {
    std::string device = std::to_string(below(plan_.gpus));
    Fields look;
    look.action = "driver_used";
    look.bytes = std::to_string(live_bytes_[device] + (300 + below(300)) * kMiB);
    look.device = device;
    look.live = std::to_string(live_bytes_[device]);
    put(look);
  }
}

void GeneratedProcess::destroy_context() {
  uint64_t device = below(plan_.gpus);
  for (size_t i = live_.size(); i-- > 0;) {
    if (on_gpu(live_[i].kind) && live_[i].device == device && live_[i].kind != "vmm" && below(2) == 0) {
      end_block(i, "context_destroyed");
    }
  }
}

// When the log comes on each block that is live has a row, among those of what goes on meanwhile.
void GeneratedProcess::switch_log() {
  Fields mark;
  mark.action = on_ ? "log_off" : "log_on";
  mark.result = "ok";
  put(mark);
  on_ = !on_;
  if (!on_) {
    return;
  }
  std::vector<uint64_t> told;
  for (const Block& each : live_) {
    told.push_back(each.generation);
  }
  for (size_t i = 0; i < told.size(); ++i) {
    tick();
    auto found = std::find_if(live_.begin(), live_.end(), [&](const Block& each) { return each.generation == told[i]; });
    if (found == live_.end()) {
      continue;
    }
    put({"live", hex(found->ptr), std::to_string(found->bytes), found->stream, device_text(*found), std::to_string(found->generation),
         found->kind, "", "ok", "", live_text(*found), "", found->logged ? found->stack : ""});
    found->logged = true;
    if (below(6) == 0) {
      allocate();
      if (below(2) == 0) {
        told.push_back(generation_);  // it is found live, too
      }
    }
  }
}

void GeneratedProcess::run() {
  tick();
  for (uint64_t i = 0; i < plan_.events; ++i) {
    tick();
    uint64_t dice = below(100);
    if (dice < 48 || live_.empty()) {
      allocate();
    } else if (dice < 88) {
      end_block(below(3) == 0 ? live_.size() - 1 : below(live_.size()), "deallocate");
    } else if (plan_.sort == Sort::rmm) {
      dice < 92 ? be_refused() : allocate();
    } else if (dice < 90) {
      be_refused();
    } else if (dice < 92) {
      look_at_driver();
    } else if (dice < 94) {
      free_unknown();
    } else if (dice < 96) {
      fail_to_free(live_[below(live_.size())]);
    } else if (dice < 97) {
      be_freed_unseen(below(live_.size()));
    } else if (dice < 98) {
      destroy_context();
    } else if (plan_.sort == Sort::switched) {
      switch_log();
    }
  }
  finish();
}

void GeneratedProcess::finish() {
  if (plan_.killed || plan_.sort == Sort::rmm) {
    return;
  }
  tick();
  thread_ = 0;
  thread_time_[thread()] = std::max(thread_time_[thread()], latest_) + 1;
  latest_ = thread_time_[thread()];
  if (left_out_ != 0) {
    Fields row;
    row.action = "left_out";
    row.bytes = std::to_string(left_out_bytes_);
    row.device = "0";
    row.result = "ok";
    row.message = "allocations " + std::to_string(left_out_);
    row.live = "0";
    put(row);
  }
  Fields mark;
  mark.action = "exit";
  mark.result = "ok";
  put(mark);
  if (below(6) == 0 && on_) {  // a free that returned when the log had its end mark
    for (size_t i = 0; i < live_.size(); ++i) {
      if (live_[i].logged) {
        ++thread_time_[thread()];
        latest_ = thread_time_[thread()];
        end_block(i, "deallocate");
        break;
      }
    }
  }
}

std::string GeneratedProcess::csv() const {
  std::string text = kHeader;
  size_t kept = rows_.size();
  if (plan_.sort == Sort::lost && kept > 12) {  // the end mark, for which room is kept, may be there
    kept = kept / 2;
    bool marked = rows_.back().find(",exit,") != std::string::npos;
    char row[160];
    std::snprintf(row, sizeof row, "%010lu,%lu,lost,,%020zu,,,,,0,,,,ok,,,,,\n", plan_.pid, latest_,
                  rows_.size() - kept - (marked ? 1 : 0));
    text += row;
    for (size_t i = 0; i < kept; ++i) {
      text += rows_[i];
    }
    std::string mark = rows_.back();  // rows that are lost have no numbers
    size_t end = mark.rfind(",,,,ok");
    size_t begin = mark.rfind(',', end - 1) + 1;
    return text + (marked ? mark.replace(begin, end - begin, std::to_string(kept + 1)) : "");
  }
  text += "\n\n";
  for (const std::string& each : rows_) {
    text += each;
  }
  return text + (plan_.killed ? "\n\n" : "");
}

std::string GeneratedProcess::run_info() const {
  nlohmann::ordered_json info{{"format", 1},
                              {"program", "/opt/app/train"},
                              {"arguments", {"train", std::to_string(plan_.pid)}},
                              {"pid", plan_.pid},
                              {"parent", plan_.parent},
                              {"folder", "/opt/app"},
                              {"host", "node1"},
                              {"start_ns", plan_.start},
                              {"driver_version", 13000},
                              {"gpus", nlohmann::ordered_json::array()},
                              {"options", nlohmann::ordered_json::object()},
                              {"environment", nlohmann::ordered_json::object()}};
  for (uint64_t i = 0; i < plan_.gpus; ++i) {
    info["gpus"].push_back({{"ordinal", i},
                            {"uuid", uuid_of((i + plan_.turned) % plan_.gpus)},
                            {"name", "NVIDIA Example"},
                            {"total_bytes", kTotal},
                            {"limit_bytes", nullptr}});
  }
  if (sample_ != 0) {
    info["options"]["XLOG_LOG_SAMPLE"] = "64KiB";
  }
  return info.dump();
}

// The rows again as RMM's logging resource writes them.
std::string GeneratedProcess::rmm() const {
  std::string text = "Thread,Time,Action,Pointer,Size,Stream\n";
  for (const std::string& row : rows_) {
    std::vector<std::string> fields(1);
    for (char c : row) {
      c == ',' ? fields.emplace_back() : fields.back() += std::string(1, c);
    }
    uint64_t us = std::stoull(fields[1]) / 1000;
    char time[40];
    std::snprintf(time, sizeof time, "%02lu:%02lu:%02lu.%06lu", us / 3'600'000'000 % 24, us / 60'000'000 % 60, us / 1'000'000 % 60,
                  us % 1'000'000);
    bool refused = fields[3].empty();
    std::string action = fields[2] == "allocate" ? refused ? "allocate failure" : "allocate" : "free";
    text += fields[0] + ',' + time + ',' + action + ',' + (refused ? "(nil)" : fields[3]) + ',' + fields[4] + ",0\n";
  }
  return text;
}

void GeneratedProcess::write(const std::string& folder) const {
  std::string stem = folder + "/train." + std::to_string(plan_.pid);
  if (plan_.sort == Sort::rmm) {
    std::ofstream(stem + ".csv") << rmm();
    return;
  }
  std::ofstream(stem + ".csv") << csv();
  if (plan_.run_info) {
    std::ofstream(stem + ".run.json") << run_info();
  }
  std::ofstream stacks(stem + ".stacks.csv");
  stacks << "stack_id,depth,module,build_id,offset,function,file,line\n";
  for (int i = 1; i <= 8; ++i) {
    std::string n = std::to_string(i);
    std::string module = i % 2 == 0 ? "/opt/app/libextra.so" : "/opt/app/train";
    stacks << n << ",0," << module << ",abcd,0x" << n << "00,step" << n << ",step.cpp," << n << '\n';
    if (i == 8) {
      stacks << n << ",1,/lib/x86_64-linux-gnu/libc.so.6,ef01,0x3f00,exit,,\n";
    }
    stacks << n << ',' << (i == 8 ? 2 : 1) << ",/opt/app/train,abcd,0x10,main,main.cpp,9\n";
  }
}

}  // namespace xlog::oracle
