// Parts of the JSON that several commands write.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "tools/analysis/analysis.h"

namespace xlog::tools {

nlohmann::json stack_json(const Report& report, uint32_t place);
nlohmann::json holders_json(const Report& report, const std::vector<Holder>& holders);
nlohmann::json group_json(const Group& group);
nlohmann::json holes_json(const Holes& holes);
// As text; what is not UTF-8 in a log becomes U+FFFD.
std::string dump(const nlohmann::json& value);

}  // namespace xlog::tools
