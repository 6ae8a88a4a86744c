// What the other commands say of a folder of logs, held to the oracle.
#pragma once

#include "oracle/asked.h"
#include "oracle/oracle.h"

namespace xlog::oracle {

void compare_check(const std::string& folder, const Oracle& right, Differences& found);
void compare_diff(const std::string& before, const Oracle& right_before, const std::string& after, const Oracle& right_after,
                  Differences& found);
void compare_simulation(const std::string& folder, const Oracle& right, Differences& found);  // of logs of whole pages
void compare_moment(const std::string& folder, const Oracle& right, uint64_t time, Differences& found);
void compare_whatis(const std::string& folder, const Oracle& right, uint64_t address, Differences& found);
void compare_page(const std::string& folder, const Oracle& right, Differences& found);

void compare_folded(const std::string& folder, const Oracle& right, Differences& found);
void compare_trace(const std::string& folder, const Oracle& right, Differences& found);
void compare_rmm(const std::string& folder, const Oracle& right, Differences& found);

}  // namespace xlog::oracle
