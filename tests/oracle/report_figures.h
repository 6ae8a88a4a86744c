// What `xlog report` says of a folder of logs, held to the oracle.
#pragma once

#include "oracle/asked.h"
#include "oracle/oracle.h"

namespace xlog::oracle {

void compare_report(const nlohmann::json& report, const Oracle& right, Differences& found);
// `xlog report --by BY --json`, where GPUs stand in the order of `report`.
void compare_split(const nlohmann::json& split, const nlohmann::json& report, const std::string& by, const Oracle& right,
                   Differences& found);

// Which of the oracle's memories a GPU of the answer is.
std::string memory_of(const nlohmann::json& gpu);
// The oracle's key of a stack in an answer.
std::string stack_key(const nlohmann::json& stack);
// What a stack is called: its innermost frame.
std::string stack_name(const std::string& key);
// How far counts of blocks may be off: nothing, unless the log is a sample.
double slack_of(const Oracle& right, double count);

}  // namespace xlog::oracle
