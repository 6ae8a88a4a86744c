// What a report must say, computed from the rows alone: each block is an interval in one order of all rows, and every figure
// is a sum over intervals. The rules are those of the README.
#pragma once

#include <functional>
#include <set>
#include <utility>

#include "oracle/log.h"

namespace xlog::oracle {

// A moment between rows: row i of all, in order, stands at 2 * i; what ends with it ends at 2 * i + 1.
using Moment = size_t;
constexpr Moment kNever = SIZE_MAX;

struct Block {
  size_t process = 0;
  std::string memory;  // which GPU, "host" or "import"
  const Row* made = nullptr;
  Moment from = 0;
  Moment until = kNever;       // freed, or gone with its process
  const Row* ended = nullptr;  // the row that ended it
  bool never_freed = true;
  bool allocated = true;   // its making is in the log; false: it was there when the log came on
  bool known_end = false;  // it was freed, rather than found to be gone
  uint64_t born = 0;       // time; of one that was not seen made, the first that is known of it
  bool lifetime_known = false;
  bool temporary = false;
  bool at_exit = false;
  bool goes_on = false;  // it was told again when the log came on: the next interval is the same block
  uint64_t bytes = 0;    // that it stands for; more than it has in a sampled log
  double count = 1;      // blocks that it stands for
  std::string stack;
};

struct Group {
  double allocations = 0;
  uint64_t bytes = 0;
  uint64_t at_peak = 0;
  uint64_t live = 0;
  double live_blocks = 0;
  double blocks_at_peak = 0;
  uint64_t freed_only_at_exit = 0;
  uint64_t failures = 0;
  double temporary = 0;
  double short_lived = 0;
};

struct Memory {
  uint64_t peak = 0;
  Moment peak_moment = 0;
  uint64_t peak_time = 0;
  uint64_t live = 0;  // never freed
  double live_blocks = 0;
  double allocations = 0;
  uint64_t failed = 0;
  uint64_t refusals = 0;
  uint64_t looks = 0;
  uint64_t most_driver_used = 0;
  std::vector<std::pair<uint64_t, uint64_t>> steps;  // effective time and bytes live from there on
};

struct Process {
  uint64_t rows = 0;
  double allocations = 0;
  uint64_t peak = 0;  // on all its GPUs
  uint64_t live = 0;
  uint64_t refusals = 0;
  bool end_mark = false;
};

class Oracle {
 public:
  explicit Oracle(std::vector<Log> logs);

  [[nodiscard]] const std::vector<Log>& logs() const { return logs_; }
  [[nodiscard]] const std::vector<Block>& blocks() const { return blocks_; }
  [[nodiscard]] std::set<std::string> memories() const;
  [[nodiscard]] Memory memory(const std::string& which) const;
  [[nodiscard]] Process process(size_t which) const;
  // Sums over the blocks and the refused requests of a memory, by what `key` says of them.
  using Key = std::function<std::string(size_t process, const Row& made)>;
  [[nodiscard]] std::map<std::string, Group> groups(const std::string& memory, const Key& key) const;
  [[nodiscard]] std::string stack_key(size_t process, const Row& made) const;
  // Bytes that were live at a moment, by the times of the rows, those of that very time included. A process has its memory up
  // to its last row.
  [[nodiscard]] uint64_t live_at(const std::string& memory, uint64_t time) const;
  [[nodiscard]] uint64_t live_of(const std::string& memory, const std::string& stack, uint64_t time) const;
  // Live when the last of all rows was written.
  [[nodiscard]] bool outlives_the_rows(const Block& block) const { return block.until > 2 * (order_.size() - 1); }
  // The pages of 2 MiB that the blocks of a memory stand on, at most.
  [[nodiscard]] uint64_t pages_at_most(const std::string& memory) const;

  uint64_t rows = 0;
  uint64_t lost = 0;
  uint64_t left_out = 0;
  uint64_t left_out_bytes = 0;
  uint64_t switches = 0;
  uint64_t log_off_ns = 0;
  uint64_t foreign_frees = 0;
  uint64_t ended_unseen = 0;
  uint64_t first = UINT64_MAX;
  uint64_t last = 0;
  uint64_t calls = 0;
  uint64_t call_ns = 0;
  std::map<unsigned, Group> sizes;      // by the power of two that they are below
  std::map<unsigned, Group> lifetimes;  // by the power of ten that they are below

  // Which memory a row is about; "" for none.
  [[nodiscard]] std::string memory_of(size_t process, const Row& row) const;

 private:
  struct Placed {
    size_t process = 0;
    const Row* row = nullptr;
    uint64_t time = 0;  // that of the latest row of its file up to it
  };
  void place_rows();
  void find_blocks();
  void take_rows_of(size_t process, const std::vector<size_t>& own);
  void end_process(size_t process, const std::vector<size_t>& own);
  void count(const Placed& placed);
  void add_up_sizes_and_lifetimes();
  [[nodiscard]] uint64_t process_end(size_t process) const;
  bool frees_at_exit(size_t process, const Row& row) const;
  std::vector<std::pair<Moment, int64_t>> changes(const std::function<bool(const Block&)>& wanted) const;

  std::vector<Log> logs_;
  std::vector<Placed> order_;
  std::vector<Block> blocks_;
};

}  // namespace xlog::oracle
