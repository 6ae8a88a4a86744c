// One process of a generated run.
#pragma once

#include <map>
#include <set>

#include "oracle/generate.h"

namespace xlog::oracle {

struct Plan {
  uint64_t pid = 0;
  uint64_t parent = 0;
  Sort sort = Sort::plain;
  uint64_t start = 0;  // ns since the epoch
  uint64_t gpus = 1;
  uint64_t turned = 0;  // which GPU its ordinal 0 is, as CUDA_VISIBLE_DEVICES does
  bool killed = false;
  bool run_info = true;  // there is a NAME.run.json
  uint64_t events = 0;
};

class GeneratedProcess {
 public:
  GeneratedProcess(const Plan& plan, uint64_t seed);
  void run();
  void write(const std::string& folder) const;
  [[nodiscard]] uint64_t end() const { return latest_; }

 private:
  struct Block {
    uint64_t ptr = 0;
    uint64_t bytes = 0;
    uint64_t generation = 0;
    uint64_t device = 0;
    std::string stream;
    std::string kind;
    std::string api_of_free;
    std::string stack;
    std::string tag;
    bool logged = true;
  };
  struct Fields {
    std::string action;
    std::string ptr;
    std::string bytes;
    std::string stream;
    std::string device;
    std::string generation;
    std::string kind;
    std::string api;
    std::string result;
    std::string message;
    std::string live;
    std::string elapsed;
    std::string stack;
    bool bare = false;  // no thread's name and no tag, as in a row `retracted`
  };
  uint64_t below(uint64_t n) { return random_() % n; }
  uint64_t thread() const { return plan_.pid + thread_; }
  bool sampled_out(uint64_t bytes);
  uint64_t address(uint64_t device, uint64_t bytes);
  std::string device_text(const Block& block) const;
  std::string live_text(const Block& block);
  void tick();
  void put(const Fields& fields);
  void allocate();
  void allocate_at(uint64_t ptr, const std::string& kind, uint64_t device = 0, uint64_t bytes = 0);
  void be_freed_unseen(size_t which);
  void be_refused();
  void end_block(size_t which, const std::string& how);
  void fail_to_free(const Block& block);
  void free_unknown();
  void look_at_driver();
  void destroy_context();
  void switch_log();
  void finish();
  std::string csv() const;
  std::string rmm() const;
  std::string run_info() const;

  Plan plan_;
  std::mt19937_64 random_;
  std::vector<std::string> rows_;
  std::vector<std::string> rmm_rows_;
  std::vector<Block> live_;
  std::map<std::string, uint64_t> live_bytes_;
  std::map<uint64_t, uint64_t> thread_time_;
  std::multimap<uint64_t, uint64_t> holes_;  // bytes -> address
  std::map<uint64_t, uint64_t> top_;         // device, and whether large: first address that none has had
  uint64_t threads_ = 1;
  uint64_t thread_ = 0;
  uint64_t now_ = 0;
  uint64_t latest_ = 0;
  uint64_t generation_ = 0;
  uint64_t seq_ = 0;
  uint64_t sample_ = 0;
  uint64_t left_out_ = 0;
  uint64_t left_out_bytes_ = 0;
  bool on_ = true;
};

}  // namespace xlog::oracle
