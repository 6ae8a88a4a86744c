// One suite for every resource and for stacks in several orders: what the interface promises, whatever is below it.
#include <atomic>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <cstdlib>
#include <random>
#include <set>
#include <thread>

#include "tests/stack/harness.h"

namespace data = boost::unit_test::data;
using namespace stack_tests;

namespace {

DeviceBlock copy_of(const DeviceBlock& block) {
  DeviceBlock copy;
  copy.ptr = block.ptr;
  copy.bytes = block.bytes;
  copy.generation = block.generation;
  copy.alloc_stream = block.alloc_stream;
  copy.device = block.device;
  return copy;
}

DeviceBlock allocated(Stack& stack, size_t bytes, StreamId on, AllocTag tag = kUntagged) {
  ResourceResult<DeviceBlock> result = stack.top->allocate(bytes, on, tag);
  BOOST_REQUIRE(result.ok());
  return std::move(*result);
}

// Seeds of the simulator, or repetitions on a GPU.
unsigned rounds(unsigned simulated, unsigned on_gpu) {
  const char* given = std::getenv("XLOG_STACK_SEEDS");
  return given != nullptr ? static_cast<unsigned>(std::atoi(given)) : Gpu::get().simulated() ? simulated : on_gpu;
}

}  // namespace

BOOST_TEST_DONT_PRINT_LOG_VALUE(Error)
BOOST_TEST_DONT_PRINT_LOG_VALUE(BlockState)

BOOST_DATA_TEST_CASE(a_block_is_what_was_asked_for, data::make(compositions()), which) {
  Stack stack(which);
  std::set<uint64_t> generations;
  std::vector<DeviceBlock> blocks;
  uint64_t bytes = 0;
  for (size_t size : {size_t{1}, size_t{100}, size_t{4096}, size_t{1} << 20, (size_t{1} << 20) + 1, size_t{5} << 20}) {
    for (StreamId id : stack.ids) {
      DeviceBlock block = allocated(stack, size, id, "test");
      BOOST_TEST(block.ptr != 0);
      BOOST_TEST(block.bytes == size);
      BOOST_TEST(block.taken >= size);
      BOOST_TEST(block.align >= 256);
      BOOST_TEST(block.ptr % block.align == 0);
      BOOST_TEST((block.alloc_stream == id));
      BOOST_TEST(block.device == 0);
      BOOST_TEST(block.tag.text() == "test");
      BOOST_TEST((block.state == BlockState::live));
      BOOST_TEST(generations.insert(block.generation.value).second);
      bytes += size;
      blocks.push_back(std::move(block));
    }
  }
  BOOST_TEST(stack.top->bytes_outstanding() == bytes);
  for (DeviceBlock& block : blocks) {
    BOOST_TEST(stack.top->deallocate(block).ok());
    BOOST_TEST((block.state == BlockState::freed || block.state == BlockState::retired));
  }
  stack.settle();
  BOOST_TEST(stack.top->bytes_outstanding() == 0);
  BOOST_TEST(stack.top->pending_bytes() == 0);
  BOOST_TEST(stack.ledger.reserved() == (stack.low_budget ? stack.pool->held_bytes() : 0));
}

BOOST_DATA_TEST_CASE(nothing_is_refused, data::make(compositions()), which) {
  Stack stack(which);
  Status status = stack.top->allocate(0).status();
  BOOST_TEST((status.error == Error::driver));
  BOOST_TEST(stack.top->bytes_outstanding() == 0);
  BOOST_TEST(stack.ledger.reserved() == 0);
}

BOOST_DATA_TEST_CASE(a_handle_is_good_once, data::make(compositions()), which) {
  Stack stack(which);
  DeviceBlock block = allocated(stack, 64, stack.ids[1]);
  DeviceBlock second = copy_of(block);
  DeviceBlock unknown = copy_of(block);
  unknown.ptr = 0xdeadbeef00;
  Status status = stack.top->deallocate(unknown);
  BOOST_TEST((status.error == Error::use_after_free));
  BOOST_TEST((status.generation == block.generation));
  BOOST_TEST(stack.top->bytes_outstanding() == 64);
  BOOST_TEST(stack.top->deallocate(block).ok());
  status = stack.top->deallocate(second);
  BOOST_TEST((status.error == Error::use_after_free));
  stack.settle();
  BOOST_TEST(stack.top->bytes_outstanding() == 0);
}

// ABA: another block stands at the address.
BOOST_DATA_TEST_CASE(an_older_handle_does_not_free_a_newer_block, data::make(compositions()), which) {
  Stack stack(which);
  DeviceBlock old = allocated(stack, 4096, stack.ids[1]);
  DeviceBlock stale = copy_of(old);
  BOOST_TEST(stack.top->deallocate(old).ok());
  bool reused = false;
  std::vector<DeviceBlock> blocks;
  for (int i = 0; i < 64 && !reused; ++i) {
    blocks.push_back(allocated(stack, 4096, stack.ids[1]));
    reused = blocks.back().ptr == stale.ptr;
  }
  BOOST_TEST(reused);
  BOOST_TEST((stack.top->deallocate(stale).error == Error::use_after_free));
  if (stack.tracks()) {
    BOOST_TEST((stack.top->prepare_block_use(stale.id(), stack.ids[2], Access::read).error == Error::use_after_free));
    BOOST_TEST((stack.top->finish_block_use(stale.id(), stack.ids[2], Access::read).error == Error::use_after_free));
  }
  for (DeviceBlock& block : blocks) {
    BOOST_TEST(stack.top->deallocate(block).ok());
  }
}

BOOST_DATA_TEST_CASE(a_handle_that_was_edited_is_refused, data::make(compositions()), which) {
  Stack stack(which);
  DeviceBlock block = allocated(stack, 64, stack.ids[1]);
  block.bytes = 65;
  BOOST_TEST((stack.top->deallocate(block).error == Error::stream_misuse));
  block.bytes = 64;
  block.alloc_stream = stack.ids[2];
  BOOST_TEST(!stack.top->deallocate(block).ok());
  block.alloc_stream = stack.ids[1];
  block.device = 1;
  BOOST_TEST((stack.top->deallocate(block).error == Error::driver));
  block.device = 0;
  BOOST_TEST(stack.top->bytes_outstanding() == 64);
  BOOST_TEST((block.state == BlockState::live));
  BOOST_TEST(stack.top->deallocate(block).ok());
}

// A StreamId of another pool does not resolve, nor one that was never given out.
BOOST_DATA_TEST_CASE(streams_of_others, data::make(compositions()), which) {
  Stack stack(which);
  StreamPool others(*Gpu::get().api, 0);
  StreamId foreign = others.acquire().id;
  StreamId beyond{stack.ids[4].value + 1};
  if (stack.tracks()) {
    BOOST_TEST((stack.top->allocate(64, foreign).status().error == Error::stream_misuse));
    BOOST_TEST((stack.top->allocate(64, beyond).status().error == Error::stream_misuse));
    DeviceBlock block = allocated(stack, 64, stack.ids[1]);
    BOOST_TEST((stack.top->prepare_block_use(block.id(), foreign, Access::read).error == Error::stream_misuse));
    BOOST_TEST((stack.top->finish_block_use(block.id(), foreign, Access::read).error == Error::stream_misuse));
    BOOST_TEST((stack.top->record_block_use(block, foreign).error == Error::stream_misuse));
    BOOST_TEST(stack.top->bytes_outstanding() == 64);
    BOOST_TEST(stack.top->deallocate(block).ok());
  }
}

BOOST_DATA_TEST_CASE(what_cannot_track_says_so, data::make(compositions()), which) {
  Stack stack(which);
  DeviceBlock block = allocated(stack, 64, stack.ids[1]);
  Status statuses[] = {stack.top->prepare_block_use(block.id(), stack.ids[2], Access::read),
                       stack.top->finish_block_use(block.id(), stack.ids[2], Access::read),
                       stack.top->record_block_use(block, stack.ids[2])};
  for (const Status& status : statuses) {
    BOOST_TEST(status.ok() == stack.tracks());
    if (!stack.tracks()) {
      MessageText text;
      put_message(text, status);
      BOOST_TEST((status.error == Error::stream_misuse));
      BOOST_TEST(text.view().find("unsupported") != std::string_view::npos);
      BOOST_TEST(text.view().starts_with("stream-ordered contract violated"));
    }
  }
  BOOST_TEST(stack.top->bytes_outstanding() == 64);
  BOOST_TEST(stack.top->deallocate(block).ok());
}

// The driver refuses: nothing is charged, and a block whose free failed is the caller's.
BOOST_DATA_TEST_CASE(refusals_of_the_driver, data::make(compositions()), which) {
  if (!Gpu::get().simulated()) {
    return;  // a GPU has no faults on demand
  }
  Stack stack(which);
  Gpu::get().sim_faults("cuMemAlloc_v2:1+:2,cuMemAllocFromPoolAsync:1+:2");
  for (int i = 0; i < 10; ++i) {
    Status status = stack.top->allocate(64, stack.ids[1]).status();
    BOOST_TEST((status.error == Error::driver));
    BOOST_TEST(status.code == CUDA_ERROR_OUT_OF_MEMORY);
  }
  Gpu::get().sim_faults("");
  BOOST_TEST(stack.top->bytes_outstanding() == 0);
  BOOST_TEST(stack.ledger.reserved() == 0);
  DeviceBlock block = allocated(stack, 64, stack.ids[1]);
  if (!stack.pool) {
    Gpu::get().sim_faults("cuMemFree_v2:1:700,cuMemFreeAsync:1:700");
    Status status = stack.top->deallocate(block);
    BOOST_TEST(status.code == CUDA_ERROR_ILLEGAL_ADDRESS);
    BOOST_TEST((block.state == BlockState::live));
    BOOST_TEST(stack.top->bytes_outstanding() == 64);
  }
  Gpu::get().sim_faults("");
  BOOST_TEST(stack.top->deallocate(block).ok());
}

// A2: write, free, allocate, write on one stream, one wait at the end.
BOOST_DATA_TEST_CASE(lifetime_on_one_stream, data::make(compositions()), which) {
  Stack stack(which);
  Current current(stack.streams);
  StreamId on = stack.ids[1];
  for (unsigned round = 1; round <= rounds(50, 20); ++round) {
    Gpu::get().seed(round);
    DeviceBlock a = allocated(stack, 4096, on);
    fill(stack.streams, on, a, 0xAA);
    BOOST_TEST(stack.top->deallocate(a).ok());
    DeviceBlock b = allocated(stack, 4096, on);
    fill(stack.streams, on, b, 0xBB);
    sync(stack.streams, on);
    BOOST_TEST(all_are(read_now(b), 0xBB));
    BOOST_TEST(stack.top->deallocate(b).ok());
    for (unsigned char i = 0; i < 32; ++i) {
      DeviceBlock each = allocated(stack, 4096, on);
      fill(stack.streams, on, each, i);
      BOOST_TEST(stack.top->deallocate(each).ok());
    }
  }
  stack.settle();
  BOOST_TEST(stack.top->bytes_outstanding() == 0);
}

namespace {

// A program that uses blocks on any stream, as the contract allows: every use between prepare and finish, no other
// waiting. What it reads must be what the uses before wrote.
class RandomProgram {
 public:
  RandomProgram(Stack& stack, unsigned seed) : stack_(stack), random_(seed) {}

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      switch (random_() % 16 == 0 ? 5 : random_() % 5) {
        case 0:
          make();
          break;
        case 1:
          drop();
          break;
        case 2:
          read();
          break;
        case 5:
          BOOST_REQUIRE(stack_.top->reap_pending().ok());
          if (stack_.pool) {
            stack_.pool->trim();
          }
          break;
        default:
          write();
      }
    }
    while (!live_.empty()) {
      drop();
    }
    for (StreamId id : stack_.ids) {
      sync(stack_.streams, id);
    }
    for (const Read& each : reads_) {
      wrong_ += all_are(*each.bytes, each.expected) ? 0 : 1;
    }
  }
  [[nodiscard]] int wrong() const { return wrong_; }

 private:
  struct Block {
    DeviceBlock block;
    unsigned char value = 0;
  };
  struct Read {
    std::unique_ptr<std::vector<unsigned char>> bytes;
    unsigned char expected;
  };

  StreamId any_stream() { return stack_.ids[random_() % stack_.ids.size()]; }
  StreamId stream_for(const DeviceBlock& block) { return stack_.tracks() ? any_stream() : block.alloc_stream; }
  // Where nothing is tracked, a block is used on its own stream alone, and stream order is enough.
  void use(const DeviceBlock& block, StreamId on, Access access, const std::function<void()>& work) {
    if (stack_.tracks()) {
      BOOST_REQUIRE(stack_.top->prepare_block_use(block.id(), on, access).ok());
    }
    work();
    if (stack_.tracks()) {
      BOOST_REQUIRE(stack_.top->finish_block_use(block.id(), on, access).ok());
    }
  }

  void make() {
    size_t bytes = 64 + random_() % 8192;
    ResourceResult<DeviceBlock> result = stack_.top->allocate(bytes, any_stream());
    BOOST_REQUIRE(result.ok());
    live_.push_back({.block = std::move(*result)});
    write_to(live_.back());
  }
  void write_to(Block& each) {
    StreamId on = stream_for(each.block);
    each.value = static_cast<unsigned char>(random_());
    use(each.block, on, random_() % 2 == 0 ? Access::write : Access::read_write, [&] { fill(stack_.streams, on, each.block, each.value); });
  }
  void write() {
    if (!live_.empty()) {
      write_to(live_[random_() % live_.size()]);
    }
  }
  void read() {
    if (live_.empty()) {
      return;
    }
    Block& each = live_[random_() % live_.size()];
    StreamId on = stream_for(each.block);
    auto bytes = std::make_unique<std::vector<unsigned char>>(each.block.bytes);
    use(each.block, on, Access::read, [&] {
      DeviceContext::Scope scope(stack_.streams.context());
      BOOST_REQUIRE(Gpu::get().to_host(bytes->data(), each.block.ptr, bytes->size(), handle(stack_.streams, on)) == CUDA_SUCCESS);
    });
    reads_.push_back({.bytes = std::move(bytes), .expected = each.value});
  }
  void drop() {
    if (live_.empty()) {
      return;
    }
    size_t at = random_() % live_.size();
    BOOST_REQUIRE(stack_.top->deallocate(live_[at].block).ok());
    std::swap(live_[at], live_.back());
    live_.pop_back();
  }

  Stack& stack_;
  std::minstd_rand random_;
  std::vector<Block> live_;
  std::vector<Read> reads_;
  int wrong_ = 0;
};

}  // namespace

BOOST_DATA_TEST_CASE(data_is_right_in_any_order_of_streams, data::make(compositions()), which) {
  Stack stack(which);
  Current current(stack.streams);
  int wrong = 0;
  unsigned count = rounds(1000, 20);
  for (unsigned seed = 1; seed <= count; ++seed) {
    Gpu::get().seed(seed);
    RandomProgram program(stack, seed);
    program.run(60);
    wrong += program.wrong();
  }
  BOOST_TEST(wrong == 0);
  stack.settle();
  BOOST_TEST(stack.top->bytes_outstanding() == 0);
  BOOST_TEST(stack.top->pending_bytes() == 0);
  BOOST_TEST(stack.ledger.reserved() == (stack.low_budget ? stack.pool->held_bytes() : 0));
}

// A1: 8 threads x 64.
BOOST_DATA_TEST_CASE(parallel_stress, data::make(compositions()), which) {
  Stack stack(which);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      Current current(stack.streams);
      uint64_t random = (t + 1) * 0x9E3779B97F4A7C15ULL;
      StreamId on = stack.ids[1 + t % 4];
      for (unsigned i = 0; i < 64; ++i) {
        random = random * 6364136223846793005ULL + 1442695040888963407ULL;
        size_t bytes = 64 + (random >> 33) % (4096 - 64 + 1);
        ResourceResult<DeviceBlock> result = stack.top->allocate(bytes, on);
        if (!result.ok()) {
          ++wrong;
          continue;
        }
        DeviceBlock block = std::move(*result);
        std::vector<unsigned char> out(bytes);
        std::vector<unsigned char> in(bytes);
        for (size_t k = 0; k < bytes; ++k) {
          out[k] = static_cast<unsigned char>(t + i + k);
        }
        Gpu& gpu = Gpu::get();
        CUstream stream = handle(stack.streams, on);
        fill(stack.streams, on, block, 0);
        bool ok = gpu.api->cuStreamSynchronize(stream) == CUDA_SUCCESS && gpu.to_device(block.ptr, out.data(), bytes) == CUDA_SUCCESS &&
                  gpu.to_host(in.data(), block.ptr, bytes, stream) == CUDA_SUCCESS && gpu.api->cuStreamSynchronize(stream) == CUDA_SUCCESS;
        wrong += ok && in == out ? 0 : 1;
        wrong += stack.top->deallocate(block).ok() ? 0 : 1;
      }
    });
  }
  for (std::thread& each : threads) {
    each.join();
  }
  BOOST_TEST(wrong == 0);
  stack.settle();
  BOOST_TEST(stack.top->bytes_outstanding() == 0);
}
