// The simulated driver's state: one process's view of some GPUs, over host memory. Everything happens under one lock, at
// API entries; a seed (XLOG_SIM_SEED) fixes which stream makes progress when. Its answers are the ones that a real driver
// gave (tests/programs/conformance.cpp prints them on either).
#pragma once

#ifndef __CUDA_API_VERSION_INTERNAL
#define __CUDA_API_VERSION_INTERNAL
#endif
#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <vector>

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace sim {

constexpr size_t kGranule = 2 << 20;  // what large blocks and chunks of small ones are made of
constexpr size_t kStep = 512;         // alignment and step of small blocks
constexpr size_t kSlab = 32 << 20;    // least that a pool takes

struct Device;
struct Pool;
struct Stream;

// A node of a graph that makes or ends memory; other nodes have no pointer.
struct GraphNode {
  CUgraphNodeType type = CU_GRAPH_NODE_TYPE_KERNEL;
  uint64_t ptr = 0;
  size_t bytes = 0;
  int device = 0;
  std::function<bool()> run{};
  std::vector<size_t> after{};  // nodes of the same graph
  void* child = nullptr;        // graph
};
struct Graph {
  // Addresses of its allocations. What a free gave back is the address of an allocation behind that free.
  struct Region {
    uint64_t ptr;
    size_t bytes;
    size_t freed_by;  // node; SIZE_MAX while it is allocated
  };
  std::vector<Region> regions;
  std::vector<std::unique_ptr<GraphNode>> nodes;
  bool instantiated = false;
  bool owned = false;  // by the node of another graph, with which it ends
};
struct GraphExec {
  std::vector<GraphNode> nodes;
  std::map<int, size_t> footprint;  // by device
};

// A capture in progress: what is put into its streams becomes a node.
struct Capture {
  CUstreamCaptureMode mode;
  int thread;  // that began it
  Stream* origin;
  std::set<Stream*> streams;
  std::set<uint64_t> allocations;  // the graph's own
  std::unique_ptr<Graph> graph = std::make_unique<Graph>();
  bool invalidated = false;
  void* into = nullptr;  // the graph that it is captured to; nullptr: a new one
};

// Operations wait for others by number: an operation is done when its number is in no queue.
struct Operation {
  uint64_t number;
  std::vector<uint64_t> after;
  std::function<bool()> run;                                // false: not yet (a wait for a value)
  enum class Sort { work, order, free } sort = Sort::work;  // order: events, memory that is made
};

struct Context {
  Device* device;
  bool primary;
  std::unique_ptr<Stream> legacy;
  std::map<unsigned, std::unique_ptr<Stream>> per_thread;
  std::set<Stream*> streams;
  CUresult fault = CUDA_SUCCESS;  // what every call gets since a kernel met an address that is not mapped
  uint64_t life = 0;              // which context this is, of those that had its handle
  int attached = 0;               // by cuCtxAttach
  Context* of = nullptr;          // what a green context is of: the device's primary context
  bool first = false;             // made by the first cuCtxCreate: for the calls with 32-bit sizes, which want such a one
};

struct Stream {
  Context* context;
  bool blocking;
  uint64_t id;
  std::deque<Operation> queue;
  std::shared_ptr<Capture> capture{};
};

struct Event {
  Context* context;
  std::vector<uint64_t> all{};  // operations that the record stands behind
  std::weak_ptr<Capture> captured{};
};

struct Block {
  uint64_t ptr;
  size_t size;
  size_t taken;
  Context* context;  // plain blocks: they end with it
  Pool* pool;        // pool blocks
  bool freeing = false;
  uint64_t serial = 0;  // never twice
  enum class Sort { device, managed, array, mapped } sort = Sort::device;
  bool resident = false;  // managed: on the device
};

// Physical memory for mapping: it lives while a handle, a mapping or a descriptor refers to it.
struct Physical {
  Device* device = nullptr;  // nullptr on the host
  size_t bytes = 0;
  ~Physical();
};
struct Handle {
  std::shared_ptr<Physical> memory;
  int holds = 1;
  int mappings = 0;
};
struct Mapping {
  size_t bytes;
  CUmemGenericAllocationHandle handle;
};

// What becomes of a block's memory, by serial, for the checks of use (checks.cpp).
struct Life {
  uint64_t made = 0;         // operation that the allocation stands for in its stream; 0: valid everywhere
  Stream* stream = nullptr;  // of that operation
  bool over = false;         // the free is done
};

// Addresses of one device, in granules, lowest first: an address that was freed is the next that is given out.
class Space {
 public:
  void open(uint64_t base, size_t bytes);
  uint64_t take(size_t bytes);
  void give_back(uint64_t ptr, size_t bytes);

 private:
  std::map<uint64_t, size_t> free_;
};

// Small pieces of larger ranges, at steps of 512 bytes, lowest first.
struct Pieces {
  size_t apart = 0;  // pieces on two sides of a multiple of this are not joined: they are of two chunks
  std::map<uint64_t, size_t> free;
  void add(uint64_t ptr, size_t bytes);
  uint64_t take(size_t bytes);
  // Takes this range out, where all of it is free: neighbours may have been joined to it.
  bool take_range(uint64_t ptr, size_t bytes);
};

struct Pool {
  Device* device;  // nullptr on the host
  bool standard;
  bool destroyed = false;
  uint64_t threshold = 0;
  std::map<int, uint64_t> attributes;
  std::set<int> readers;  // devices that were given access
  std::map<uint64_t, size_t> slabs;
  Pieces pieces;  // free for everybody
  struct Returned {
    uint64_t ptr;
    size_t bytes;
    Stream* stream;
    uint64_t free;  // which one: the range may be taken and freed again before this one is reached
    bool done;
  };
  uint64_t frees = 0;
  size_t blocks = 0;               // whose free is not done
  std::vector<Returned> returned;  // freed in a stream: its own may have it at once
  uint64_t used = 0;
  uint64_t used_high = 0;
  uint64_t reserved = 0;
};

struct Device {
  int ordinal;
  int physical = 0;  // before CUDA_VISIBLE_DEVICES
  size_t total;
  size_t used = 0;  // granules in use
  Space space;
  Pieces chunks{.apart = kGranule, .free = {}};
  std::map<uint64_t, size_t> chunk_bases;  // base -> bytes in use
  Context* primary = nullptr;
  int primary_count = 0;
  std::unique_ptr<Pool> standard_pool;
  Pool* pool = nullptr;  // current
  size_t graph_reserved = 0;
  size_t graph_used = 0;
};

struct Driver {
  std::mutex lock;
  bool initialised = false;
  bool shut_down = false;
  int pid = 0;
  std::vector<std::unique_ptr<Device>> devices;
  std::map<uint64_t, Block> blocks;  // live, by address
  std::set<Context*> contexts;
  std::set<Context*> dead_contexts;
  std::set<Stream*> streams;
  std::set<Event*> events;
  std::set<Pool*> pools;
  std::set<uint64_t> unfinished;   // operation numbers
  std::map<uint64_t, Life> lives;  // by serial, of blocks that an operation may still use
  uint64_t next_serial = 1;
  std::set<std::shared_ptr<Capture>> captures;
  std::map<void*, std::unique_ptr<Graph>> graphs;
  std::map<void*, GraphExec> graph_execs;
  std::map<uint64_t, GraphNode> graph_memory;     // live, made by a launch
  std::map<uint64_t, size_t> graph_addresses;     // of all nodes
  std::set<std::pair<Context*, Context*>> peers;  // reader, owner
  std::map<CUmemGenericAllocationHandle, Handle> handles;
  std::vector<CUmemGenericAllocationHandle> spare_handles;  // given out again, as a heap does
  std::map<uint64_t, Mapping> mappings;
  std::map<uint64_t, size_t> reservations;
  std::map<size_t, std::vector<uint64_t>> spare_reservations;  // by size
  std::map<uint64_t, std::pair<size_t, int>> opened;           // other processes' blocks: bytes, how often
  std::map<void*, std::pair<Context*, size_t>> host;           // pinned
  uint64_t next_operation = 1;
  uint64_t next_stream_id = 1;
  std::minstd_rand random;
  unsigned pace_seed = 0;
  std::string last_call;

  static Driver& get();
};

// Kinds of handle; where their objects are (hostile.cpp).
enum class Kind { context, stream, event, pool, graph, exec };
bool is_hostile();
void* take_storage(Kind kind, size_t bytes);
void give_storage(Kind kind, void* memory);
template <class T>
T* make(Kind kind, T value) {
  return new (take_storage(kind, sizeof(T))) T(std::move(value));
}
template <class T>
void end(Kind kind, T* object) {
  object->~T();
  give_storage(kind, object);
}
// Ends a hostile driver's process where the handle has ended.
void must_not_have_ended(Kind kind, const void* handle);
// Whether there is such an object now.
bool is_known(const Context* context);
bool is_known(const Stream* stream);
bool is_known(const Event* event);
bool is_known(const Pool* pool);
void lose_turn();
void begin_hostile_call(const char* name);
void enter_stream(uint64_t stream, const char* call);
void leave_stream(uint64_t stream);

// What XLOG_SIM_FAIL wants of this call, else CUDA_SUCCESS. Every call of the driver asks once, before it has any effect.
CUresult injected_fault(const char* name);

// Held for the length of an API call.
class Call {
 public:
  // `stream`: the context of the stream where a handle names one, else the current one.
  enum class Needs { nothing, init, context, stream };
  // `unsafe`: refused while something captures, unless the thread's mode allows it (cuThreadExchangeStreamCaptureMode).
  enum class Beside { safe, unsafe };
  Call(const char* name, Needs needs, bool per_thread = false, Beside beside = Beside::safe, CUstream handle = nullptr);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  // A hostile driver's call is on this stream until it ends.
  void is_on(const Stream& stream) const;
  [[nodiscard]] bool failed() const { return result_ != CUDA_SUCCESS; }
  [[nodiscard]] CUresult result() const { return result_; }
  [[nodiscard]] Context* context() const { return context_; }
  [[nodiscard]] Device& device() const { return *context_->device; }
  // The stream that a handle means here; nullptr when it is none.
  [[nodiscard]] Stream* stream(CUstream handle) const;

 private:
  const char* name_;
  std::unique_lock<std::mutex> guard_;
  mutable std::vector<uint64_t> on_;  // numbers of streams
  CUresult result_ = CUDA_SUCCESS;
  Context* context_ = nullptr;
  bool per_thread_;
};

// A thread's stack of current contexts. A context that ended stays current where it was, and is not the next one with its handle.
struct Current {
  Context* context;
  uint64_t life;
  [[nodiscard]] bool is_alive() const;
};
std::vector<Current>& current_stack();

// A thread's own stream has been used: what a driver does when the thread ends.
void watch_thread_end();

// The thread's own (cuThreadExchangeStreamCaptureMode).
CUstreamCaptureMode& capture_mode();
// CUDA_SUCCESS, or what a potentially unsafe call gets now; it loses the captures that it conflicts with.
CUresult unsafe_call();
// What an operation on all of a context gets while a stream of it captures, whatever the mode.
CUresult context_wide_call(const Context& context);
// A node of what is captured, behind the ones before it.
void add_captured(Capture& capture, GraphNode node);
void end_capture(const std::shared_ptr<Capture>& capture);
std::vector<Stream*> all_streams(Context& context);
// Numbers of the operations that everything in the context stands behind.
std::vector<uint64_t> all_work(Context& context);
bool is_idle(Context& context);

// A piece of memory that an operation touches, checked when it runs: the block must have been made in stream order, and
// its free must not be done. A use that cannot be right ends the process with a line that says why.
struct Use {
  uint64_t serial;
  Stream* stream;
  void check() const;
};
Use use_of(uint64_t ptr, Stream* stream);
uint64_t begin_life(uint64_t made, Stream* stream);
void end_life(uint64_t serial);

// Puts an operation into a stream, with the legacy stream's rules.
void enqueue(Stream& stream, std::function<bool()> run, Operation::Sort sort = Operation::Sort::work);
// Lets streams progress at random, within what is promised.
void make_progress();
bool is_idle(const Stream& stream);
bool is_done(const Event& event);
// Runs until `done`; gives the lock away between attempts, so that another thread can change what is waited for.
void wait_until(const std::function<bool()>& done, std::mutex& lock);
void release_idle_pools();
void empty_idle_pools(const Device& device);

// Addresses that programs reserve for mappings: where nothing is mapped a kernel faults.
uint64_t reservations_begin();
constexpr uint64_t kReservations = uint64_t{1} << 38;  // bytes of them
Block* find_block(uint64_t address);                   // live block that holds the address
CUresult allocate_plain(Context& context, size_t bytes, uint64_t& out);
void release_plain(const Block& block);
void release_empty_chunks(Device& device);  // with the last context of the device
// The end of a context waits for its work, and gives the lock away meanwhile: what was known before is asked for again then.
void finish_work(Context* context);
void end_context(Context& context);
Context* make_context(Device& device, bool primary);
Context* retain_primary(Device& device);
void release_primary(Device& device);
constexpr size_t kMostGraphBytes = size_t{1} << 49;
uint64_t graph_address(size_t bytes);
// The next node of the graph allocates, or frees.
uint64_t allocate_in(Graph& graph, const std::vector<size_t>& after, size_t bytes);
void free_in(Graph& graph, uint64_t ptr);
Graph* find_graph(CUgraph graph);
// The graph as it runs: with its children's nodes in it, and the memory that they need at once.
GraphExec flattened(const Graph& graph);
// Whether the bytes lie in memory of a graph: of a node, for what only builds a graph; made by a launch, for what runs.
bool in_graph_memory(uint64_t at, size_t bytes, bool building);
void end_host_memory(Context& context);
bool free_graph_memory(uint64_t ptr);
CUresult free_block(uint64_t ptr);
void return_to_pool(const Block& block, Stream* stream);

}  // namespace sim
