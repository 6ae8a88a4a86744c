// Parts of the JSON that several commands write.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

// Where a run has more GPUs than kMostGpusTold without the frames, which stand in `all_gpus`.
nlohmann::json stack_json(const Report& report, uint32_t place, bool with_frames = true);
nlohmann::json stack_json(const ProcessLog& log, const StackFile& stacks, uint64_t id);
nlohmann::json holders_json(const Report& report, const std::vector<Holder>& holders, bool with_frames = true);
nlohmann::json group_json(const Group& group);
nlohmann::json holes_json(const Holes& holes);
// As text; what is not UTF-8 in a log becomes U+FFFD, and what would act on a terminal is escaped.
std::string dump(const nlohmann::json& value);

}  // namespace xlog::tools
