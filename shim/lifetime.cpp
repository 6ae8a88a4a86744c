#include "shim/lifetime.h"

#include <iterator>

namespace xlog {

namespace {

constexpr std::string_view kFamilies[] = {
#define XLOG_FAMILY(name) #name,
#define XLOG_EXCUSED(name, reason)
#include "shim/lifetime.def"
#undef XLOG_FAMILY
#undef XLOG_EXCUSED
};
constexpr std::string_view kKnown[] = {
#define XLOG_FAMILY(name)
#define XLOG_EXCUSED(name, reason) #name,
#include "shim/lifetime.def"
#undef XLOG_FAMILY
#undef XLOG_EXCUSED
#define XLOG_ROW(role, name) #name,
#include "shim/intercepted.def"
#undef XLOG_ROW
};

// "cuCtxCreate" of "cuCtxCreate_v4", "cuMemAllocAsync" of "cuMemAllocAsync_ptsz".
constexpr std::string_view base_of(std::string_view name) noexcept {
  if (name.ends_with("_ptsz") || name.ends_with("_ptds")) {
    name.remove_suffix(5);
  }
  size_t at = name.rfind("_v");
  return at != std::string_view::npos && at + 3 == name.size() ? std::string_view(name.data(), at) : name;
}

}  // namespace

bool is_unknown_lifetime(std::string_view name) noexcept {
  bool family = false;
  for (std::string_view each : kFamilies) {
    family = family || name.starts_with(each);
  }
  std::string_view base = base_of(name);
  for (size_t i = 0; family && i < std::size(kKnown); ++i) {
    family = base_of(kKnown[i]) != base;
  }
  return family;
}

}  // namespace xlog
