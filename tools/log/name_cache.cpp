#include "tools/log/name_cache.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tools/log/byte_text.h"
#include "tools/log/cache_folder.h"
#include "tools/log/csv_line.h"
#include "tools/log/debuginfod.h"

namespace xlog::tools {

namespace {

constexpr const char* kVersion = "xlog names 1 ";  // then a check sum of what follows
constexpr size_t kLargestFile = 32 << 20;
constexpr size_t kLargestCache = 256 << 20;
constexpr size_t kLargestField = 128 << 10;

// FNV-1a.
uint64_t hash_of(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char c : text) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  }
  return hash;
}

std::string hex_of(uint64_t value) {
  char text[17];
  snprintf(text, sizeof text, "%016lx", value);
  return text;
}

std::string identity_of(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) {
    return "-";
  }
  return std::to_string(info.st_dev) + ' ' + std::to_string(info.st_ino) + ' ' + std::to_string(info.st_size) + ' ' +
         std::to_string(info.st_mtim.tv_sec) + '.' + std::to_string(info.st_mtim.tv_nsec);
}

// Another name for the cache's file when the file has changed, or when debug information was installed for it.
std::string name_for(const std::string& path, const std::string& build_id) {
  bool good = build_id.size() >= 8 && build_id.size() <= 128 && build_id.find_first_not_of("0123456789abcdef") == build_id.npos;
  if (!good || identity_of(path) == "-") {
    return "";
  }
  std::string beside = "/usr/lib/debug/.build-id/" + build_id.substr(0, 2) + '/' + build_id.substr(2) + ".debug";
  std::string all = path + '\n' + identity_of(path) + '\n' + identity_of(beside) + '\n' + identity_of(path + ".debug") + '\n' +
                    (is_debuginfod_allowed() ? "servers" : "");
  return build_id + '-' + hex_of(hash_of(all));
}

}  // namespace

NameCache::NameCache(const std::string& path, const std::string& build_id) : name_(name_for(path, build_id)) {
  int folder = name_.empty() ? -1 : open_cache_folder();
  if (folder >= 0) {
    read(folder);
    close(folder);
  }
}

void NameCache::read(int folder) {
  std::optional<std::string> text = read_cache_file(folder, name_, kLargestFile);
  std::string_view version(kVersion);
  size_t head = version.size() + 17;
  if (!text || text->size() < head || !text->starts_with(version)) {
    return;
  }
  std::string_view body = std::string_view(*text).substr(head);
  if (std::string_view(*text).substr(version.size(), 17) != hex_of(hash_of(body)) + '\n') {
    return;
  }
  CsvLine line;
  while (!body.empty()) {
    size_t end = body.find('\n');
    std::optional<uint64_t> offset = line.split(body.substr(0, end)) && line.size() == 4 ? parse_hex(line[0]) : std::nullopt;
    std::optional<uint64_t> number = parse_decimal(line[3]);
    if (end == body.npos || !offset || !number || line[1].size() > kLargestField || line[2].size() > kLargestField) {
      names_.clear();
      return;
    }
    std::vector<CodeName>& names = names_[*offset];
    if (*number != UINT64_MAX) {  // which stands for an address without names
      names.push_back({from_field(line[1]), from_field(line[2]), *number});
    }
    body.remove_prefix(end + 1);
  }
}

const std::vector<CodeName>* NameCache::find(uint64_t offset) const {
  auto it = names_.find(offset);
  return it == names_.end() ? nullptr : &it->second;
}

const std::vector<CodeName>& NameCache::add(uint64_t offset, std::vector<CodeName> names) {
  changed_ = true;
  return names_[offset] = std::move(names);
}

void NameCache::write() const {
  if (name_.empty() || !changed_) {
    return;
  }
  std::string body;
  auto put = [&body](uint64_t offset, const CodeName& name) {
    char number[32];
    snprintf(number, sizeof number, "0x%lx,", offset);
    body += number + whole_field(name.function) + ',' + whole_field(name.file) + ',' + std::to_string(name.line) + '\n';
  };
  for (const auto& [offset, names] : names_) {
    for (const CodeName& each : names) {
      put(offset, each);
    }
    if (names.empty()) {
      put(offset, {.function = "", .file = "", .line = UINT64_MAX});
    }
  }
  int folder = body.size() <= kLargestFile - 64 ? open_cache_folder() : -1;
  if (folder >= 0) {
    write_cache_file(folder, name_, kVersion + hex_of(hash_of(body)) + '\n' + body);
    trim_cache(folder, kLargestCache);
    close(folder);
  }
}

}  // namespace xlog::tools
