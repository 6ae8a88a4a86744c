// One event of the log: what a row holds, before it is text. The schema is columns.def; writer, reader and tools share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace xlog {

inline constexpr std::string_view kColumns[] = {
#define XLOG_COLUMN(name) #name,
#include "runtime/record/columns.def"
#undef XLOG_COLUMN
};
inline constexpr size_t kColumnCount = sizeof kColumns / sizeof kColumns[0];

enum class Column : uint8_t {
#define XLOG_COLUMN(name) name,
#include "runtime/record/columns.def"
#undef XLOG_COLUMN
};

inline constexpr std::string_view kStackColumns = "stack_id,depth,module,build_id,offset,function,file,line";
inline constexpr std::string_view kPythonModule = "[python]";  // stands for the module of a Python frame
inline constexpr int kFormatVersion = 1;

// Names that stand in the column `action`.
namespace action {
inline constexpr std::string_view allocate = "allocate";
inline constexpr std::string_view deallocate = "deallocate";
inline constexpr std::string_view reap_pending = "reap_pending";
inline constexpr std::string_view map = "map";      // physical memory became visible at `ptr`; the message names its handle
inline constexpr std::string_view unmap = "unmap";  // and is not any more
inline constexpr std::string_view context_destroyed = "context_destroyed";  // the block went with its context
inline constexpr std::string_view ended_unseen = "ended_unseen";            // its address came back from the driver: freed out of our sight
inline constexpr std::string_view retracted = "retracted";                  // place claimed for a free that then failed: see its next row
inline constexpr std::string_view left_out = "left_out";        // `bytes` = of allocations without rows (XLOG_LOG_MIN, XLOG_LOG_SAMPLE)
inline constexpr std::string_view log_on = "log_on";            // `xlog log on`: what is live follows, each block a row
inline constexpr std::string_view live = "live";                // a block that was live then
inline constexpr std::string_view log_off = "log_off";          // `xlog log off`: of what happens from here on there are no rows
inline constexpr std::string_view lost = "lost";                // `bytes` = number of rows that could not be written
inline constexpr std::string_view driver_used = "driver_used";  // `bytes` = in use on the device by the driver's count, whosever it is
inline constexpr std::string_view unhooked = "unhooked";        // `message` = a function that makes memory and was handed out unhooked
inline constexpr std::string_view finding = "finding";          // the guard found a misuse of the block: `result` which, `message` what
inline constexpr std::string_view exit = "exit";                // the process began to exit: end mark of the log
}  // namespace action

inline constexpr uint64_t kNone = UINT64_MAX;  // an empty numeric field

// Views must outlive the rendering of the row, no longer.
struct Event {
  uint64_t thread = 0;
  uint64_t time = 0;
  std::string_view action;
  uint64_t ptr = kNone;
  uint64_t bytes = kNone;
  uint64_t stream = kNone;
  uint64_t device = kNone;
  std::string_view tag;
  std::string_view query_id;
  uint64_t seq = kNone;
  uint64_t generation = kNone;
  std::string_view kind;
  std::string_view api;
  std::string_view result;
  std::string_view message;
  uint64_t live_bytes = kNone;
  uint64_t elapsed_ns = kNone;
  uint64_t stack_id = kNone;
  std::string_view thread_name;
};

}  // namespace xlog
