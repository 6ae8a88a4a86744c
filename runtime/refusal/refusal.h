// What is known when a GPU, or the limit, has no memory left for a request; as JSON for tools, and as a text for people.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "runtime/base/text.h"
#include "runtime/refusal/gpu_processes.h"
#include "runtime/refusal/holders.h"
#include "runtime/refusal/stack_labels.h"

namespace xlog {

struct Refusal {
  uint64_t time = 0;  // ns since the epoch
  uint32_t thread = 0;
  int device = -1;  // ordinal; -1: pinned host memory
  std::string_view gpu_name;
  std::string_view gpu_uuid;
  std::string_view program;
  std::string_view api;
  std::string_view kind;
  uint64_t requested = 0;  // bytes; UINT64_MAX: more than 64 bits hold
  uint64_t stack_id = 0;
  bool by_limit = false;
  uint64_t limit = UINT64_MAX;  // UINT64_MAX: none
  uint64_t counted = 0;         // against the limit
  bool has_driver = false;      // the driver could be asked:
  uint64_t driver_free = 0;
  uint64_t driver_total = 0;
  uint64_t pool_reserved = 0;  // by the default pool
  uint64_t pool_used = 0;
  uint64_t number = 1;  // of the refusals of this process so far, this one included
  LiveHolders live;
  GpuProcesses processes;

  // What the driver has in use and no listed process has: of processes that cannot be seen from here, as in a container.
  [[nodiscard]] uint64_t unseen() const noexcept;
};

void put_refusal_json(TextSink& out, const Refusal& refusal, std::span<const StackLabel> labels) noexcept;
// Some ten lines.
void put_refusal_text(TextSink& out, const Refusal& refusal, std::span<const StackLabel> labels) noexcept;

}  // namespace xlog
