// What the functions that make sections share.
#pragma once

#include <string>
#include <vector>

#include "tools/report/report.h"
#include "tools/report/sections/section.h"

namespace xlog::tools {

struct SectionMaker {
  const Report& report;
  const ReportStyle& style;
  std::vector<const GpuReport*> gpus;  // what is said one by one: told_gpus()
  std::string log_name;                // as the commands to try next name it
  std::vector<Section> made = {};

  Section& add(const char* key, const GpuReport* gpu, std::string title) {
    return made.emplace_back(Section{.key = key, .gpu = gpu, .title = std::move(title)});
  }
  // The columns bytes, share and blocks; a row for each holder, and one for the rest of `whole`.
  static void add_holders(Section& section, const std::vector<Holder>& holders, uint64_t whole);
  // The shape of the holes that blocks have left, as a remark.
  static void add_holes(Section& section, const Holes& holes);
};

// `part` of `whole` as the number of a cell whose unit is Unit::share; never more than all.
Cell share_of(uint64_t part, uint64_t whole);

#define XLOG_SECTION(name) void make_##name(SectionMaker& maker);
#include "tools/report/sections/sections.def"
#undef XLOG_SECTION

}  // namespace xlog::tools
