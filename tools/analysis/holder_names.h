// What to call a stack in one line, so that no two stacks of a report are called the same.
#pragma once

#include <string>
#include <vector>

namespace xlog::tools {

struct Report;

// By place: the program's own function and line that made the call, or the framework's cache. Of stacks that would be called
// the same, callers follow ("main app.cpp:12 <- run app.cpp:30"), else what differs within a library ("-> resize vector.h:7"),
// else the stack's number.
std::vector<std::string> name_holders(const Report& report);

}  // namespace xlog::tools
