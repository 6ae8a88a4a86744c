// RMM's log.
#include <map>
#include <unordered_map>

#include "tools/analysis/taken.h"
#include "tools/log/block_rows.h"
#include "tools/report/export.h"
#include "tools/report/format.h"

namespace xlog::tools {

namespace {

std::string time_of_day(uint64_t ns) {
  auto two = [](uint64_t n) { return std::to_string(100 + n).substr(1); };
  uint64_t seconds = ns / 1'000'000'000 % 86'400;
  return two(seconds / 3600) + ':' + two(seconds / 60 % 60) + ':' + two(seconds % 60) + '.' +
         std::to_string(1'000'000 + ns / 1000 % 1'000'000).substr(1);
}

}  // namespace

uint64_t export_rmm(const std::vector<ProcessLog>& logs, uint64_t device, std::ostream& out, std::vector<std::string>& problems) {
  LogMerge merge(logs, problems);
  std::map<size_t, std::unordered_map<uint64_t, std::pair<uint64_t, uint64_t>>> live;  // ptr -> generation, bytes
  uint64_t left_out = 0;
  size_t process = 0;
  // The same address in two processes is two blocks, and a reader of this form has one table of them: a device address has 47 bits.
  auto pointer = [&process](uint64_t ptr) { return hex_text(ptr | (uint64_t{process} << 48)); };
  out << "Thread,Time,Action,Pointer,Size,Stream\n";
  auto row = [&](const Event& event, const char* what, const std::string& ptr, uint64_t bytes) {
    out << event.thread << ',' << time_of_day(event.time) << ',' << what << ',' << ptr << ',' << bytes << ','
        << (event.stream == kNone || event.stream == 0 ? "0" : hex_text(event.stream)) << '\n';
  };
  uint64_t last = 0;  // time of the rows so far
  // Its process has ended, or logs anew what is live.
  auto forget = [&](size_t whose, uint64_t thread) {
    Event end;
    end.thread = thread;
    end.time = last;
    for (const auto& [ptr, block] : live[whose]) {
      row(end, "free", hex_text(ptr | (uint64_t{whose} << 48)), block.second);
    }
    live[whose].clear();
  };
  for (const Event* event = merge.next(process); event != nullptr; event = merge.next(process)) {
    for (size_t each : merge.ended()) {
      forget(each, logs[each].pid);
    }
    last = event->action == action::lost ? last : std::max(last, event->time);
    if (event->action == action::log_on) {
      forget(process, event->thread);
    }
    bool begins = begins_block(*event);
    bool ends = ends_block(*event);
    auto& own = live[process];
    if (begins && (event->device != device || !has_address(event->kind) || event->bytes == kNone)) {
      ++left_out;
    } else if (begins && event->result != "ok") {
      row(*event, "allocate failure", "(nil)", event->bytes);
    } else if (begins && event->ptr != kNone) {
      auto old = own.find(event->ptr);
      if (old != own.end() && old->second.first == event->generation) {
        continue;  // made while the log came on: it has both rows
      }
      if (old != own.end()) {  // freed out of sight
        row(*event, "free", pointer(event->ptr), old->second.second);
      }
      own[event->ptr] = {event->generation, event->bytes};
      row(*event, "allocate", pointer(event->ptr), event->bytes);
    } else if (ends && event->result == "ok") {
      auto known = own.find(event->ptr);
      if (known != own.end() && known->second.first == event->generation) {
        row(*event, "free", pointer(event->ptr), known->second.second);
        own.erase(known);
      } else {
        ++left_out;
      }
    }
  }
  return left_out;
}

}  // namespace xlog::tools
