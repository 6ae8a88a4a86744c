// The bytes of NAME.csv. A place in the file is claimed first and filled later; a place that is never filled reads as
// empty lines. What has been filled is in the page cache and outlives the process, however it dies.
//
// Three ways, chosen when the file is created:
//   window      the file's next part is mapped, space taken with fallocate first: ext4, xfs, tmpfs. No descriptor is kept.
//   positioned  one pwrite a row, on a descriptor at or above 1000 that is checked before each use: every other file system
//   stream      one write a row, in the order of filling: a FIFO or a device
// Errors: a claim fails (disk full, RLIMIT_FSIZE, `max_bytes`, file replaced); the caller counts the row as lost.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/record/file_io.h"

namespace xlog {

struct LogWindow {
  char* data;
  uint64_t begin;
  uint64_t size;
  std::atomic<uint64_t> filled;  // bytes; at `size` the window is unmapped by whoever filled the last
  std::atomic<uint32_t> used;
};

struct LogPlace {
  uint64_t offset = 0;
  uint32_t size = 0;
  LogWindow* first = nullptr;   // where `offset` lies
  LogWindow* second = nullptr;  // where the rest lies, when the place crosses into the next window
};

enum class LogFailure : uint8_t { none, full, file_limit, max_bytes, gone };

// Lives in wiped-on-fork memory: all zero is a closed file.
class LogFile {
 public:
  // Creates `base` + ".csv" (0600, exclusively, following no link); when that exists `base`.1.csv and so on. 0 or errno.
  int create(std::string_view base, uint64_t max_bytes) noexcept;
  // Opens a FIFO or a device that exists.
  int open_stream(const char* path) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return mode_ != Mode::closed; }
  // Path without its last ".csv": the stem of the companion files.
  [[nodiscard]] std::string_view stem() const noexcept { return {path_, stem_size_}; }
  [[nodiscard]] const char* path() const noexcept { return path_; }
  [[nodiscard]] bool is_stream() const noexcept { return mode_ == Mode::stream; }

  // Not thread-safe: the caller holds its lock.
  LogFailure claim(size_t size, LogPlace& out) noexcept;
  LogFailure claim_beyond_max(size_t size, LogPlace& out) noexcept;
  // Thread-safe, once a place. The parts are written one behind the other; what they leave of the place stays empty lines.
  void fill(const LogPlace& place, std::string_view head, std::string_view middle, std::string_view tail) noexcept;
  // Writes over bytes that were filled before.
  void overwrite(uint64_t offset, std::string_view text) noexcept;
  // Under the caller's lock: cuts the unused end off when nobody is filling; later rows go one pwrite each.
  void settle() noexcept;

 private:
  enum class Mode : uint8_t { closed, window, positioned, stream };
  static constexpr size_t kWindows = 256;
  static constexpr size_t kPath = 1200;

  LogFailure extend(size_t size) noexcept;
  LogFailure add_window(uint64_t bytes) noexcept;
  LogFailure add_blank(uint64_t bytes) noexcept;
  LogWindow* free_window() noexcept;
  int reopen() const noexcept;
  int held_descriptor() noexcept;
  // The one that is held, or one to be closed after use (`keep` false).
  int borrow_descriptor(bool& keep) noexcept;
  void write_at(uint64_t offset, std::string_view text) noexcept;
  void fill_windows(const LogPlace& place, std::string_view head, std::string_view middle, std::string_view tail) noexcept;
  static void count(LogWindow* window, uint64_t bytes) noexcept;

  Mode mode_;
  bool settled_;
  int descriptor_;  // positioned, stream
  FileIdentity identity_;
  uint64_t max_bytes_;
  uint64_t tail_;   // first unclaimed byte
  uint64_t limit_;  // first byte behind the prepared part of the file
  uint64_t next_window_;
  LogWindow* last_;  // window that ends at limit_
  LogWindow windows_[kWindows];
  size_t stem_size_;
  char path_[kPath];
};

}  // namespace xlog
