#include "oracle/other_figures.h"

#include <algorithm>

#include "oracle/report_figures.h"

namespace xlog::oracle {

using nlohmann::json;

namespace {

bool is_gpu(const std::string& memory) { return memory != "host" && memory != "import"; }

Oracle::Key name_of(const Oracle& right) {
  return [&right](size_t process, const Row& made) { return stack_name(right.stack_key(process, made)); };
}

struct Sums {
  uint64_t peak = 0;  // of the GPU that had most
  uint64_t live = 0;
  double blocks = 0;
  double allocations = 0;
  uint64_t refusals = 0;
};

Sums sums_of(const Oracle& right) {
  Sums out;
  for (const std::string& each : right.memories()) {
    Memory own = right.memory(each);
    out.peak = is_gpu(each) ? std::max(out.peak, own.peak) : out.peak;
    out.live += is_gpu(each) ? own.live : 0;
    out.blocks += each != "import" ? own.live_blocks : 0;
    out.allocations += is_gpu(each) ? own.allocations : 0;
    out.refusals += own.refusals;
  }
  return out;
}

std::string bytes_text(uint64_t bytes) { return std::to_string(bytes) + "B"; }

}  // namespace

void compare_check(const std::string& folder, const Oracle& right, Differences& found) {
  Sums own = sums_of(right);
  if (right.lost != 0) {
    found.same("check of a log that is not whole", ask({"check", "--json", "--no-leaks", folder}).status, 2);
    return;
  }
  auto check = [&](const char* what, const std::vector<std::string>& options, bool good) {
    std::vector<std::string> arguments{"check", "--json", "--allow-partial", "--allow-empty"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.push_back(folder);
    Answer answer = ask(arguments);
    json said = answer.json();
    found.same(std::string("check ") + what, answer.status, good ? 0 : 1);
    if (said.is_object()) {
      found.same(std::string("check ") + what + ".good", said["good"].get<bool>() ? 1 : 0, good ? 1 : 0);
      found.same("check.peak_bytes", said["peak_bytes"], static_cast<double>(own.peak));
    }
  };
  check("--max-peak", {"--max-peak", bytes_text(own.peak)}, true);
  if (own.peak > 1) {
    check("--max-peak less", {"--max-peak", bytes_text(own.peak - 1)}, false);
  }
  check("--no-leaks", {"--no-leaks"}, own.blocks == 0);
  check("--no-refusals", {"--no-refusals"}, own.refusals == 0);
}

void compare_diff(const std::string& before, const Oracle& right_before, const std::string& after, const Oracle& right_after,
                  Differences& found) {
  const std::pair<const char*, uint64_t Group::*> kinds[] = {{"peak", &Group::at_peak}, {"live", &Group::live}, {"total", &Group::bytes}};
  for (const auto& [what, member] : kinds) {
    json said = ask({"diff", "--json", "--what", what, before, after}).json();
    if (!said.is_object()) {
      found.note(std::string("diff ") + what + ": no JSON");
      return;
    }
    std::map<std::string, uint64_t> sums[2];
    const Oracle* sides[2] = {&right_before, &right_after};
    for (int side = 0; side < 2; ++side) {
      const char* name = side == 0 ? "before" : "after";
      Sums own = sums_of(*sides[side]);
      std::string title = std::string("diff ") + what + '.' + name;
      found.same(title + ".peak_bytes", said[name]["peak_bytes"], static_cast<double>(own.peak));
      found.same(title + ".live_bytes", said[name]["live_bytes"], static_cast<double>(own.live));
      found.same(title + ".allocations", said[name]["allocations"], own.allocations, slack_of(*sides[side], own.allocations));
      for (const std::string& memory : sides[side]->memories()) {
        for (const auto& [stack, group] : sides[side]->groups(memory, name_of(*sides[side]))) {
          sums[side][stack] += is_gpu(memory) ? group.*member : 0;
        }
      }
    }
    std::map<std::string, json> stacks;
    for (const json& each : said["stacks"]) {
      stacks[each["name"]] = each;
    }
    std::map<std::string, uint64_t> names = sums[0];
    names.insert(sums[1].begin(), sums[1].end());
    for (const auto& [name, unused] : names) {
      bool differs = sums[0][name] != sums[1][name];
      std::string title = std::string("diff ") + what + '[' + name + ']';
      if (differs != stacks.contains(name)) {
        found.note(title + (differs ? ": not said" : ": there is no difference"));
      } else if (differs) {
        found.same(title + ".before", stacks[name]["before_bytes"], static_cast<double>(sums[0][name]));
        found.same(title + ".after", stacks[name]["after_bytes"], static_cast<double>(sums[1][name]));
      }
    }
  }
}

void compare_simulation(const std::string& folder, const Oracle& right, Differences& found) {
  uint64_t most = 0;
  std::vector<uint64_t> needed;
  for (const std::string& each : right.memories()) {
    needed.push_back(right.pages_at_most(each));
    most = std::max(most, needed.back());
  }
  for (uint64_t less : {0, 1}) {
    Answer answer = ask({"simulate", "--json", "--context", "0B", "--gpu", bytes_text(most - less), folder});
    json said = answer.json();
    found.same("simulate", answer.status, static_cast<double>(less));
    std::vector<uint64_t> told;
    if (said.is_object()) {
      found.same("simulate.fits", said["fits"].get<bool>() ? 1 : 0, less == 0 ? 1 : 0);
      for (const json& gpu : said["gpus"]) {
        told.push_back(gpu["needed_bytes"]);
      }
    }
    std::sort(told.begin(), told.end());
    std::sort(needed.begin(), needed.end());
    found.same("simulate.needed_bytes", json(told).dump(), json(needed).dump());
  }
}

void compare_moment(const std::string& folder, const Oracle& right, uint64_t time, Differences& found) {
  json said = ask({"report", "--json", "--at", std::to_string(time), folder}).json();
  if (!said.is_object()) {
    found.note("--at: no JSON");
    return;
  }
  std::set<std::string> memories = right.memories();
  for (const json& gpu : said["gpus"]) {
    std::string memory = memory_of(gpu);
    found.same("--at " + std::to_string(time) + " gpus[" + memory + "].live_bytes", gpu["live_bytes"],
               static_cast<double>(right.live_at(memory, time)));
    memories.erase(memory);
  }
  for (const std::string& each : memories) {
    found.same("--at gpus[" + each + ']', 0, static_cast<double>(right.live_at(each, time)));
  }
}

// Of a process that has ended: what stood there at its end is there now.
void compare_whatis(const std::string& folder, const Oracle& right, uint64_t address, Differences& found) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%lx", address);
  Answer answer = ask({"whatis", "--json", text, folder});
  json said = answer.json();
  if (!said.is_object()) {
    found.note("whatis: no JSON");
    return;
  }
  bool any = false;
  for (size_t process = 0; process < right.logs().size(); ++process) {
    std::vector<const Block*> past;
    const Block* now = nullptr;
    for (const Block& each : right.blocks()) {
      const std::string& kind = each.made->kind;
      bool has_address = kind != "vmm" && kind != "array" && kind != "graph" && kind != "host";
      uint64_t bytes = std::max<uint64_t>(*each.made->bytes, 1);
      if (each.process == process && has_address && !each.goes_on && address >= *each.made->ptr && address - *each.made->ptr < bytes) {
        each.never_freed ? void(now = &each) : past.push_back(&each);
      }
    }
    any = any || now != nullptr || !past.empty();
    std::string what = "whatis " + std::string(text) + " of " + std::to_string(right.logs()[process].pid);
    const json* own = nullptr;
    for (const json& each : said["processes"]) {
      own = each["process"] == right.logs()[process].pid ? &each : own;
    }
    if (own == nullptr) {
      if (now != nullptr || !past.empty()) {
        found.note(what + ": not said");
      }
      continue;
    }
    found.same(what + ".now", (*own)["now"].is_null() ? "null" : (*own)["now"]["bytes"].dump() + ' ' + (*own)["now"]["made_ns"].dump(),
               now == nullptr ? "null" : std::to_string(*now->made->bytes) + ' ' + std::to_string(now->born));
    uint64_t count = own->contains("past_count") ? (*own)["past_count"].get<uint64_t>() : (*own)["past"].size();
    found.same(what + ".past", static_cast<double>(count), static_cast<double>(past.size()));
    std::sort(past.begin(), past.end(), [](const Block* a, const Block* b) { return a->until < b->until; });
    const json& list = (*own)["past"];
    for (size_t i = 0; i < list.size() && i < past.size() && past.size() == count; ++i) {
      const Block& block = *past[past.size() - list.size() + i];
      found.same(what + ".past[" + std::to_string(i) + ']', list[i]["bytes"].dump() + ' ' + list[i]["made_ns"].dump(),
                 std::to_string(*block.made->bytes) + ' ' + std::to_string(block.born));
    }
  }
  found.same("whatis.found", said["found"].get<bool>() ? 1 : 0, any ? 1 : 0);
  found.same("whatis", answer.status, any ? 0 : 1);
}

void compare_page(const std::string& folder, const Oracle& right, Differences& found) {
  std::string file = folder + "/page.html";
  found.same("--html", ask({"report", "--html", file, folder}).status, 0);
  std::string text = file_text(file);
  size_t begin = text.find("application/json");
  begin = begin == text.npos ? begin : text.find('>', begin) + 1;
  json page = begin == text.npos ? json() : json::parse(text.substr(begin, text.find("</script>", begin) - begin), nullptr, false);
  if (!page.is_object()) {
    found.note("--html: no data");
    return;
  }
  // Its GPUs have titles only; the report's are in the same order.
  json report = ask({"report", "--json", folder}).json();
  found.same("--html gpus", static_cast<double>(page["gpus"].size()), static_cast<double>(report["gpus"].size()));
  uint64_t length = right.last - right.first;
  found.same("--html length", page["length"].dump(), std::to_string(length));
  for (size_t i = 0; i < page["gpus"].size() && i < report["gpus"].size(); ++i) {
    const json& gpu = page["gpus"][i];
    std::string memory = memory_of(report["gpus"][i]);
    Memory own = right.memory(memory);
    std::string what = "--html gpus[" + memory + ']';
    found.same(what + ".peak", gpu["peak"], static_cast<double>(own.peak));
    uint64_t sum = 0;
    for (const json& each : gpu["at_peak"]["places"]) {
      sum += each[1].get<uint64_t>();
    }
    found.same(what + ".at_peak", static_cast<double>(sum), static_cast<double>(own.peak));
    uint64_t steps = gpu["steps"].size();
    uint64_t most = 0;
    for (const json& each : gpu["steps"]) {
      most = std::max(most, each.get<uint64_t>());
    }
    found.same(what + ".steps, at most", static_cast<double>(most), static_cast<double>(own.peak));
    for (const json& each : gpu["snapshots"]) {
      uint64_t places = 0;
      for (const json& place : each["places"]) {
        places += place[1].get<uint64_t>();
      }
      found.same(what + ".snapshot places", static_cast<double>(places), each["live"]);
    }
    // A step is the most that was live in its part of the run.
    for (uint64_t k = 0; k < steps && length > steps; ++k) {
      uint64_t from = right.first + ((length + 1) * k + steps - 1) / steps;
      uint64_t to = right.first + ((length + 1) * (k + 1) + steps - 1) / steps;
      uint64_t high = 0;
      for (const auto& [time, live] : own.steps) {
        high = time < from ? live : time < to ? std::max(high, live) : high;
      }
      if (gpu["steps"][k] != high) {
        found.same(what + ".steps[" + std::to_string(k) + ']', gpu["steps"][k], static_cast<double>(high));
        break;
      }
    }
  }
}

}  // namespace xlog::oracle
