// Bytes whose free stands in a stream and is not known to be done: plain memory that was freed by cuMemFreeAsync. They count
// until the work before the free is done.
//
// What has to be known later is known from events of our own. One is recorded behind the free, inside the call in which the
// program passed the stream, and in that thread; after that only the event is asked. A question about the stream itself
// would race with the program's own calls on it: the driver dies when a stream is asked about while another thread begins
// a capture on it (seen on an H200, driver 580.159.04). A record into the legacy stream would end the capture of another
// thread, so it is made only while nothing captures; otherwise the event is recorded over the context at a later look.
//
// Any number of frees; a look costs one query for each of them. Bytes are credited when the event says so, or when the
// context has ended, since its end waits for its work. Thread-safe; no lock is held across a driver call.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "runtime/base/lock.h"
#include "runtime/resource/address_table.h"
#include "runtime/resource/block.h"
#include "runtime/resource/capture_gate.h"
#include "runtime/resource/slab.h"

namespace xlog {

class PendingFrees {
 public:
  // Without a gate, captures are somebody else's concern.
  constexpr PendingFrees(const DriverApi& driver, CaptureGate* gate) noexcept : driver_(driver), gate_(gate) {}

  // Inside the program's call on `stream`, which has just freed `bytes`. False: there is no host memory to remember them.
  bool add(const StreamArg& stream, uint64_t bytes) noexcept;
  // The same, behind all work that the current context has now; false also where no context is current.
  bool add_behind_context(uint64_t bytes) noexcept;
  // Asks the events; returns the bytes whose free is now known to be done.
  uint64_t settle() noexcept;
  // Before a context ends (`alive`: the driver has not ended it yet), and after the call: returns the bytes that were
  // pending there. In between nothing of the context is asked about, and what a new context of the same handle adds is not
  // touched.
  void begin_context_end(CUcontext context, bool alive) noexcept;
  uint64_t finish_context_end(CUcontext context, bool ended) noexcept;

  [[nodiscard]] uint64_t total() const noexcept { return total_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool empty() const noexcept { return total() == 0; }

 private:
  struct Entry {
    Entry* next;
    Entry* prev;
    CUcontext context;  // the event's
    CUevent event;
    uint64_t bytes;
    bool recorded;
    bool asked;   // a thread is inside a driver call on the event, and nobody else takes the entry out
    bool ending;  // with its context
  };
  // Events that are not in use, of one context.
  struct Spares {
    uint64_t ptr = 0;  // context
    Entry* first = nullptr;
  };

  CUcontext context_of(const StreamArg& stream) noexcept;
  Entry* take_spare(CUcontext context) noexcept;
  bool record(Entry& entry, const StreamArg& stream) noexcept;
  bool record_over_context(Entry& entry) noexcept;
  bool is_done(Entry& entry) noexcept;
  void keep(Entry* entry) noexcept;
  Entry* ask_next(Entry* from) noexcept;
  Entry* answered(Entry* entry, bool done) noexcept;
  void unlink(Entry* entry) noexcept;
  void put_spare(Entry* entry) noexcept;

  const DriverApi& driver_;
  CaptureGate* gate_;
  std::atomic<uint64_t> total_{0};
  Lock lock_{};
  Entry* pending_ = nullptr;
  AddressTable<Spares> spares_{};
  Slab<Entry> slab_{};
};

}  // namespace xlog
