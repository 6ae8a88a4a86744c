#include "tools/log/frame_table.h"

#include <map>

#include "runtime/record/event.h"
#include "tools/log/name_cache.h"
#include "tools/log/symbols.h"

namespace xlog::tools {

namespace {

std::string key_of(const Frame& frame) {
  std::string key = frame.module + '\n' + frame.build_id + '\n' + std::to_string(frame.offset);
  return frame.module == kPythonModule ? key + '\n' + frame.function + '\n' + frame.file + '\n' + std::to_string(frame.line) : key;
}

bool can_be_resolved(const Site& site) {
  const std::string& module = site.frames.back().module;
  return !site.has_names() && module != "[unknown]" && module != kPythonModule;
}

void put_names(const std::vector<CodeName>& names, Site& site) {
  if (names.empty()) {
    return;
  }
  Frame address = site.frames.back();
  site.frames.clear();
  for (size_t i = 0; i < names.size(); ++i) {
    Frame& frame = site.frames.emplace_back(address);
    frame.function = names[i].function;
    frame.file = names[i].file;
    frame.line = names[i].line;
    frame.inlined = i + 1 < names.size();
  }
}

}  // namespace

bool Site::has_names() const { return !frames.back().function.empty(); }

const Site& FrameTable::of(std::vector<Frame> frames) {
  auto [it, fresh] = sites_.try_emplace(key_of(frames.back()));
  if (fresh) {
    it->second.frames = std::move(frames);
  } else if (!it->second.has_names() && !frames.back().function.empty()) {
    it->second.frames = std::move(frames);
    ++version_;
  }
  return it->second;
}

bool FrameTable::needs_names() const {
  for (const auto& [key, site] : sites_) {
    if (site.has_names() && site.frames.back().module != kPythonModule) {
      return false;
    }
  }
  return !sites_.empty();
}

void FrameTable::resolve() {
  std::map<std::pair<std::string, std::string>, std::vector<Site*>> by_module;
  for (auto& [key, site] : sites_) {
    if (can_be_resolved(site)) {
      by_module[{site.frames.back().module, site.frames.back().build_id}].push_back(&site);
    }
  }
  for (auto& [module, sites] : by_module) {
    NameCache cache(module.first, module.second);
    std::unique_ptr<Symbols> symbols;  // not opened where the cache has all
    for (Site* site : sites) {
      uint64_t offset = site->frames.back().offset;
      const std::vector<CodeName>* known = cache.find(offset);
      if (known == nullptr) {
        symbols = symbols != nullptr ? std::move(symbols) : std::make_unique<Symbols>(module.first, module.second);
        known = &cache.add(offset, symbols->names(offset));
      }
      put_names(*known, *site);
    }
    cache.write();
  }
  ++version_;
}

}  // namespace xlog::tools
