#include "oracle/oracle.h"

#include <algorithm>
#include <bit>

namespace xlog::oracle {

namespace {

bool is_call(const Row& row) {
  static const std::set<std::string> kCalls{"allocate", "live", "deallocate", "context_destroyed", "ended_unseen"};
  return row.elapsed_ns.has_value() && kCalls.contains(row.action);
}

bool is_end(const Row& row) {
  bool ends = row.action == "deallocate" || row.action == "context_destroyed" || row.action == "ended_unseen";
  return ends && row.result == "ok" && row.kind != "foreign";
}

}  // namespace

Oracle::Oracle(std::vector<Log> logs) : logs_(std::move(logs)) {
  place_rows();
  for (const Placed& each : order_) {
    count(each);
  }
  find_blocks();
  add_up_sizes_and_lifetimes();
}

// The order of a file holds; files are in step by time. A row `lost` is written when all others are, and stands in front.
void Oracle::place_rows() {
  for (size_t process = 0; process < logs_.size(); ++process) {
    uint64_t latest = 0;
    for (const Row& row : logs_[process].rows) {
      if (row.action == "lost") {
        lost += row.bytes.value_or(0);
        continue;
      }
      latest = std::max(latest, row.time.value_or(0));
      order_.push_back({process, &row, latest});
    }
  }
  std::stable_sort(order_.begin(), order_.end(), [](const Placed& a, const Placed& b) { return a.time < b.time; });
}

void Oracle::count(const Placed& placed) {
  const Row& row = *placed.row;
  ++rows;
  if (row.time) {
    first = std::min(first, *row.time);
    last = std::max(last, *row.time);
  }
  calls += is_call(row) ? 1 : 0;
  call_ns += is_call(row) ? *row.elapsed_ns : 0;
  foreign_frees += row.action == "deallocate" && row.kind == "foreign" && row.result == "ok" ? 1 : 0;
  ended_unseen += row.action == "ended_unseen" ? 1 : 0;
  switches += row.action == "log_off" || row.action == "log_on" ? 1 : 0;
  if (row.action == "left_out") {
    left_out_bytes += *row.bytes;
    left_out += std::stoull(row.message.substr(row.message.find(' ') + 1));
  }
}

std::string Oracle::memory_of(size_t process, const Row& row) const {
  if (row.kind == "host" || row.kind == "import") {
    return row.kind;
  }
  if (!row.device) {
    return "";
  }
  auto known = logs_[process].devices.find(*row.device);
  return known != logs_[process].devices.end() ? known->second.uuid : "GPU " + std::to_string(*row.device);
}

std::string Oracle::stack_key(size_t process, const Row& made) const {
  auto found = made.stack_id ? logs_[process].stacks.find(*made.stack_id) : logs_[process].stacks.end();
  if (found == logs_[process].stacks.end()) {
    return "";
  }
  std::string key;
  for (const Frame& each : found->second) {
    key += each.module + ' ' + each.build_id + ' ' + each.offset + ' ' + each.function + ' ' + each.file + ':' + each.line + '\n';
  }
  return key;
}

bool Oracle::frees_at_exit(size_t process, const Row& row) const {
  auto found = row.stack_id ? logs_[process].stacks.find(*row.stack_id) : logs_[process].stacks.end();
  return found != logs_[process].stacks.end() &&
         std::any_of(found->second.begin(), found->second.end(), [](const Frame& each) { return each.function == "exit"; });
}

void Oracle::find_blocks() {
  for (size_t process = 0; process < logs_.size(); ++process) {
    std::vector<size_t> own;
    for (size_t i = 0; i < order_.size(); ++i) {
      if (order_[i].process == process) {
        own.push_back(i);
      }
    }
    take_rows_of(process, own);
    end_process(process, own);
  }
}

void Oracle::take_rows_of(size_t process, const std::vector<size_t>& own) {
  std::map<uint64_t, size_t> at;          // address -> block that is live there
  std::map<uint64_t, size_t> before_off;  // the same, as it was when the log came on again
  std::map<uint64_t, uint64_t> made_by;   // thread -> allocations so far
  std::map<size_t, uint64_t> turn;        // block -> what its thread's count was then
  uint64_t off_since = 0;
  bool exited = false;
  auto end = [&](size_t which, Moment moment, const Row* row) {
    Block& block = blocks_[which];
    block.until = moment;
    block.ended = row;
    block.never_freed = false;
  };
  for (size_t i : own) {
    const Row& row = *order_[i].row;
    std::string memory = memory_of(process, row);
    exited = exited || row.action == "exit";
    if (row.action == "log_off") {
      off_since = *row.time;
    } else if (row.action == "log_on" || (row.action == "exit" && off_since != 0)) {
      log_off_ns += off_since != 0 ? *row.time - off_since : 0;
      off_since = 0;
      if (row.action == "exit") {
        continue;
      }
      before_off = at;  // what was there is what is told from here on
      for (const auto& [ptr, which] : at) {
        end(which, 2 * i, nullptr);
      }
      at.clear();
    } else if ((row.action == "allocate" || row.action == "live") && row.result == "ok" && row.ptr && row.bytes && !memory.empty()) {
      auto there = at.find(*row.ptr);
      if (there != at.end() && row.action == "live" && blocks_[there->second].made->generation == row.generation) {
        continue;  // it was made while the log came on, and has both rows
      }
      if (there != at.end()) {
        end(there->second, 2 * i, nullptr);  // its end is among the rows that were lost
      }
      Block block;
      block.process = process;
      block.memory = memory;
      block.made = &row;
      block.from = 2 * i;
      block.born = *row.time;
      block.allocated = row.action == "allocate";
      block.lifetime_known = block.allocated;
      uint64_t sample = logs_[process].sample;
      block.bytes = *row.bytes != 0 ? std::max(*row.bytes, sample) : 0;
      block.count = *row.bytes != 0 && *row.bytes < sample ? static_cast<double>(sample) / static_cast<double>(*row.bytes) : 1;
      auto known = row.action == "live" ? before_off.find(*row.ptr) : before_off.end();
      if (known != before_off.end() && blocks_[known->second].made->generation == row.generation) {
        const Block& before = blocks_[known->second];  // the same block, as old as it was, and its maker's
        block.made = before.made;
        block.born = before.born;
        block.lifetime_known = before.lifetime_known;
        blocks_[known->second].goes_on = true;
        before_off.erase(known);
      }
      if (block.allocated) {
        turn[blocks_.size()] = ++made_by[*row.thread];
      }
      at[*row.ptr] = blocks_.size();
      blocks_.push_back(block);
    } else if (is_end(row) && row.ptr) {
      auto there = at.find(*row.ptr);
      if (there != at.end() && blocks_[there->second].made->generation == row.generation) {
        end(there->second, 2 * i, &row);
        Block& block = blocks_[there->second];
        block.known_end = row.action != "ended_unseen";
        block.temporary = block.known_end && turn.contains(there->second) && turn[there->second] == made_by[*block.made->thread];
        block.at_exit = row.action == "deallocate" && (exited || frees_at_exit(process, row));
        at.erase(there);
      }
    }
  }
}

// The memory of a process ends with it: at its exit, which is its last row, or the row after which it was killed; later
// where its wait status says when.
void Oracle::end_process(size_t process, const std::vector<size_t>& own) {
  if (own.empty()) {
    return;
  }
  Moment end = 2 * own.back() + 1;
  for (size_t i = own.back(); logs_[process].ended_ns && i < order_.size() && order_[i].time <= *logs_[process].ended_ns; ++i) {
    end = 2 * i + 1;
  }
  for (Block& each : blocks_) {
    if (each.process == process && each.never_freed) {
      each.until = end;
    }
  }
}

std::set<std::string> Oracle::memories() const {
  std::set<std::string> all;
  for (const Placed& each : order_) {
    if (each.row->action == "allocate" || each.row->action == "live" || each.row->action == "driver_used") {
      all.insert(memory_of(each.process, *each.row));
    }
  }
  all.erase("");
  return all;
}

std::vector<std::pair<Moment, int64_t>> Oracle::changes(const std::function<bool(const Block&)>& wanted) const {
  std::vector<std::pair<Moment, int64_t>> all;
  for (const Block& each : blocks_) {
    if (wanted(each)) {
      all.emplace_back(each.from, static_cast<int64_t>(each.bytes));
      if (each.until != kNever) {
        all.emplace_back(each.until, -static_cast<int64_t>(each.bytes));
      }
    }
  }
  std::sort(all.begin(), all.end());  // at one moment what ends comes first
  return all;
}

Memory Oracle::memory(const std::string& which) const {
  Memory out;
  int64_t live = 0;
  auto all = changes([&](const Block& each) { return each.memory == which; });
  for (size_t i = 0; i < all.size(); ++i) {
    live += all[i].second;
    bool whole = i + 1 == all.size() || all[i + 1].first != all[i].first;
    if (whole) {
      out.steps.emplace_back(order_[all[i].first / 2].time, live);
    }
    if (whole && static_cast<uint64_t>(live) > out.peak) {
      out.peak = static_cast<uint64_t>(live);
      out.peak_moment = all[i].first;
      out.peak_time = *order_[all[i].first / 2].row->time;
    }
  }
  for (const auto& [name, group] : groups(which, [](size_t, const Row&) { return ""; })) {
    out.live = group.live;
    out.live_blocks = group.live_blocks;
    out.allocations = group.allocations;
    out.failed = group.failures;
  }
  for (const Placed& each : order_) {
    const Row& row = *each.row;
    if (memory_of(each.process, row) == which) {
      out.refusals += row.action == "allocate" && row.result == "CUDA_ERROR_OUT_OF_MEMORY" ? 1 : 0;
      out.looks += row.action == "driver_used" ? 1 : 0;
      out.most_driver_used = row.action == "driver_used" ? std::max(out.most_driver_used, *row.bytes) : out.most_driver_used;
    }
  }
  return out;
}

std::map<std::string, Group> Oracle::groups(const std::string& which, const Key& key) const {
  Moment peak = 0;
  uint64_t most = 0;
  int64_t live = 0;
  auto all = changes([&](const Block& each) { return each.memory == which; });
  for (size_t i = 0; i < all.size(); ++i) {
    live += all[i].second;
    if ((i + 1 == all.size() || all[i + 1].first != all[i].first) && static_cast<uint64_t>(live) > most) {
      most = static_cast<uint64_t>(live);
      peak = all[i].first;
    }
  }
  std::map<std::string, Group> out;
  for (const Block& each : blocks_) {
    if (each.memory != which) {
      continue;
    }
    Group& group = out[key(each.process, *each.made)];
    if (each.allocated) {
      group.allocations += each.count;
      group.bytes += each.bytes;
    }
    if (most != 0 && each.from <= peak && each.until > peak) {
      group.at_peak += each.bytes;
      group.blocks_at_peak += each.count;
    }
    if (each.never_freed) {
      group.live += each.bytes;
      group.live_blocks += each.count;
    }
    group.temporary += each.temporary ? each.count : 0;
    group.freed_only_at_exit += each.at_exit ? each.bytes : 0;
    bool short_lived = each.known_end && each.lifetime_known && *each.ended->time < each.born + 1'000'000;
    group.short_lived += short_lived ? each.count : 0;
  }
  for (const Placed& each : order_) {
    if (each.row->action == "allocate" && each.row->result != "ok" && memory_of(each.process, *each.row) == which) {
      out[key(each.process, *each.row)].failures += 1;
    }
  }
  return out;
}

Process Oracle::process(size_t which) const {
  Process out;
  for (const Row& row : logs_[which].rows) {
    out.rows += row.action != "lost" ? 1 : 0;
    out.end_mark = out.end_mark || row.action == "exit";
    out.refusals += row.action == "allocate" && row.result == "CUDA_ERROR_OUT_OF_MEMORY" ? 1 : 0;
  }
  auto counts = [&](const Block& each) { return each.process == which && each.memory != "host" && each.memory != "import"; };
  int64_t live = 0;
  auto all = changes(counts);
  for (size_t i = 0; i < all.size(); ++i) {
    live += all[i].second;
    if (i + 1 == all.size() || all[i + 1].first != all[i].first) {
      out.peak = std::max(out.peak, static_cast<uint64_t>(live));
    }
  }
  for (const Block& each : blocks_) {
    out.allocations += each.process == which && each.allocated ? each.count : 0;
    out.live += counts(each) && each.never_freed ? each.bytes : 0;
  }
  return out;
}

uint64_t Oracle::live_at(const std::string& memory, uint64_t time) const {
  uint64_t live = 0;
  for (const Block& each : blocks_) {
    uint64_t end = each.never_freed ? process_end(each.process) : *order_[each.until / 2].row->time - 1;
    live += each.memory == memory && *order_[each.from / 2].row->time <= time && time <= end ? each.bytes : 0;
  }
  return live;
}

uint64_t Oracle::process_end(size_t process) const {
  uint64_t end = logs_[process].ended_ns.value_or(0);
  for (const Placed& each : order_) {
    end = each.process == process ? std::max(end, *each.row->time) : end;
  }
  return end;
}

uint64_t Oracle::live_of(const std::string& memory, const std::string& stack, uint64_t time) const {
  uint64_t live = 0;
  for (const Block& each : blocks_) {
    bool begun = order_[each.from / 2].time <= time;
    bool gone = each.until != kNever && order_[each.until / 2].time <= time;
    live += each.memory == memory && begun && !gone && stack_key(each.process, *each.made) == stack ? each.bytes : 0;
  }
  return live;
}

uint64_t Oracle::pages_at_most(const std::string& memory) const {
  constexpr uint64_t kPage = 2 << 20;
  std::vector<std::pair<Moment, std::pair<const Block*, int>>> all;
  for (const Block& each : blocks_) {
    if (each.memory == memory && each.bytes != 0) {
      all.push_back({each.from, {&each, 1}});
      if (each.until != kNever) {
        all.push_back({each.until, {&each, -1}});
      }
    }
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return std::pair{a.first, a.second.second} < std::pair{b.first, b.second.second};
  });
  std::map<std::pair<size_t, uint64_t>, int> held;  // process and page -> blocks on it
  size_t most = 0;
  for (const auto& [moment, change] : all) {
    const Block& block = *change.first;
    for (uint64_t page = *block.made->ptr / kPage; page <= (*block.made->ptr + *block.made->bytes - 1) / kPage; ++page) {
      if ((held[{block.process, page}] += change.second) == 0) {
        held.erase({block.process, page});
      }
    }
    most = std::max(most, held.size());
  }
  return most * kPage;
}

void Oracle::add_up_sizes_and_lifetimes() {
  for (const Block& each : blocks_) {
    if (each.allocated) {
      Group& size = sizes[static_cast<unsigned>(std::bit_width(*each.made->bytes))];
      size.allocations += each.count;
      size.bytes += each.bytes;
    }
    if (each.known_end && each.lifetime_known) {
      uint64_t lived = *each.ended->time > each.born ? *each.ended->time - each.born : 0;
      Group& life = lifetimes[lived == 0 ? 0 : static_cast<unsigned>(std::to_string(lived).size())];
      life.allocations += each.count;
      life.bytes += each.bytes;
    }
  }
}

}  // namespace xlog::oracle
