// The mapped parts of a log file. A window that is filled is unmapped when the next is added. All zero is empty.
//
// A mapped file may be cut by anybody who can write to it, and a store to what was cut off ends the program by SIGBUS. So the
// kernel is asked to write the row there (process_vm_writev), which fails instead. That takes no descriptor, which the
// program could close or take over, and knows no limit of the file's size.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace xlog {

// A row is whole when its first bytes are there: they are written last, by one instruction. Until then the place begins
// with an empty line, wherever the process dies.
inline constexpr size_t kWrittenLast = 8;

// Whether it could be written to memory that is a mapped file's. False also where a sandbox does not allow it.
bool write_mapped(char* at, std::string_view text) noexcept;

class LogWindows {
 public:
  // Under the caller's lock: takes over `size` mapped bytes that stand at `begin` in the file, behind all others. False
  // when there are too many.
  bool add(char* data, uint64_t begin, uint64_t size) noexcept;
  // Thread-safe, once a place that lies in windows. What the parts leave of it stays empty lines. False when it could not be
  // written: somebody cut the file.
  bool fill(uint64_t offset, uint64_t size, std::string_view head, std::string_view middle, std::string_view tail) noexcept;
  // The same for bytes that stay empty lines.
  void skip(uint64_t offset, uint64_t size) noexcept { count(find(offset), size); }
  // Under the caller's lock: whether every byte from the begin of the last window to `end` is filled.
  [[nodiscard]] bool is_filled_to(uint64_t end) const noexcept;
  // Under the caller's lock, when that was so and nobody can claim there any more: unmaps the last window.
  void drop_last() noexcept;

 private:
  static constexpr size_t kStripes = 8;
  struct alignas(64) Stripe {
    std::atomic<uint64_t> filled;  // bytes, by the threads of the stripe
  };
  struct Window {
    std::atomic<uint64_t> begin;  // written last; kChanging while the others are not its own
    std::atomic<uint64_t> end;
    std::atomic<char*> data;
    std::atomic<uint32_t> used;
    Stripe stripes[kStripes];
    [[nodiscard]] uint64_t filled() const noexcept;
    void unmap() noexcept;
  };
  struct View {
    Window* window;
    char* data;
    uint64_t begin;
    uint64_t end;
  };
  static constexpr size_t kWindows = 64;
  static constexpr uint64_t kChanging = UINT64_MAX;

  View find(uint64_t offset) noexcept;
  bool put(uint64_t offset, std::string_view text) noexcept;
  static bool write_row(char* at, std::string_view head, std::string_view middle, std::string_view tail) noexcept;
  static void count(const View& view, uint64_t bytes) noexcept;
  void unmap_filled() noexcept;

  std::atomic<uint32_t> newest_;
  Window windows_[kWindows];
};

}  // namespace xlog
