// The bytes of NAME.csv. A place in the file is claimed first and filled later; a place that is never filled reads as
// empty lines. What has been filled is in the page cache and outlives the process, however it dies.
//
// Three ways, chosen when the file is created:
//   window      the file's next part is mapped, space taken with fallocate first: ext4, xfs, tmpfs, overlays of the first two.
//               No descriptor is kept, and the kernel writes there for us (log_windows.h).
//   positioned  one pwrite a row, on a descriptor at or above 1000 that is checked before each use: every other file system,
//               and a sandbox that does not allow process_vm_writev
//   stream      one write a row, in the order of filling: a FIFO or a device
// Errors: a claim fails (disk full, RLIMIT_FSIZE, `max_bytes`, file replaced), or a place cannot be filled (file cut, nobody
// reads the FIFO); the caller counts the row as lost.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/base/lock.h"
#include "runtime/record/file_io.h"
#include "runtime/record/log_windows.h"

namespace xlog {

struct LogPlace {
  uint64_t offset = 0;
  uint32_t size = 0;
  bool mapped = false;  // it lies in windows
};

enum class LogFailure : uint8_t { none, full, file_limit, max_bytes, gone, unwritten };

// Lives in wiped-on-fork memory: all zero is a closed file.
class LogFile {
 public:
  // Creates `base` + ".csv" (0600, exclusively, following no link); when that exists `base`.1.csv and so on. 0 or errno.
  int create(std::string_view base, uint64_t max_bytes) noexcept;
  // Opens a FIFO or a device that exists.
  int open_stream(const char* path) noexcept;

  [[nodiscard]] bool is_open() const noexcept { return mode() != Mode::closed; }
  // Path without its last ".csv": the stem of the companion files.
  [[nodiscard]] std::string_view stem() const noexcept { return {path_, stem_size_}; }
  [[nodiscard]] const char* path() const noexcept { return path_; }
  [[nodiscard]] bool is_stream() const noexcept { return mode() == Mode::stream; }

  // Thread-safe: a place for a row of `size` bytes and the digits of its `seq`, the next number. Takes a lock only to make
  // the file longer. On failure nothing is claimed.
  LogFailure claim(size_t size, LogPlace& out, uint64_t& seq) noexcept;
  // For a line without a number.
  LogFailure claim(size_t size, LogPlace& out) noexcept;
  // The same, whatever `max_bytes` says.
  LogFailure claim_beyond_max(size_t size, LogPlace& out) noexcept;
  // Thread-safe, once a place. The parts are written one behind the other; what they leave of the place stays empty lines. False when it
  // could not be written.
  bool fill(const LogPlace& place, std::string_view head, std::string_view middle, std::string_view tail) noexcept;
  // Writes over bytes of the file's first page that were claimed before, which needs no descriptor. False where the file is
  // not mapped, or somebody cut it.
  bool overwrite_mapped(uint64_t offset, std::string_view text) noexcept;
  // The same, anywhere, by a descriptor.
  bool overwrite(uint64_t offset, std::string_view text) noexcept;
  // Of a stream.
  bool is_writable_within(unsigned milliseconds) noexcept;
  // Cuts the unused end off when nobody is filling and the lock can be had soon; later rows go one pwrite each.
  void settle() noexcept;

 private:
  enum class Mode : uint8_t { closed, window, positioned, stream };
  // What the next row claims with one instruction, so that the order of places is the order of numbers. Alone in its line.
  struct alignas(64) Next {
    uint64_t place;  // first unclaimed byte; kSettled is set when each row makes the file longer by itself
    uint64_t seq;    // rows claimed
  };
  static constexpr uint64_t kSettled = uint64_t{1} << 63;
  static constexpr size_t kPath = 1200;

  [[nodiscard]] Mode mode() const noexcept { return mode_.load(std::memory_order_relaxed); }
  LogFailure claim_row(size_t size, bool numbered, uint64_t max_bytes, LogPlace& out, uint64_t& seq) noexcept;
  Next read_next() noexcept;
  bool replace_next(const Next& expected, const Next& wanted) noexcept;
  // Why it could not be made longer a moment ago: to ask the file system each time would cost the program more than a row.
  LogFailure still_refused() noexcept;
  LogFailure extend_for(uint64_t end, size_t size) noexcept;
  // Under the lock.
  LogFailure extend(size_t size) noexcept;
  LogFailure add_window(uint64_t bytes) noexcept;
  static LogFailure prepare(int fd, uint64_t begin, uint64_t bytes) noexcept;
  void map_first_page(int fd) noexcept;
  LogFailure add_blank(uint64_t bytes) noexcept;
  void settle_locked() noexcept;
  bool has_companions() noexcept;
  // A new file, or a negative errno.
  int create_numbered(std::string_view base, unsigned number) noexcept;
  int reopen() const noexcept;
  int held_descriptor() noexcept;
  // The one that is held, or one to be closed after use (`keep` false).
  int borrow_descriptor(bool& keep) noexcept;
  bool write_at(uint64_t offset, std::string_view text) noexcept;
  bool reaches(const LogPlace& place) noexcept;
  bool write_stream(std::string_view row) noexcept;

  Next next_;
  Lock lock_;
  std::atomic<LogFailure> refused_;
  std::atomic<uint64_t> refused_until_;  // steady
  std::atomic<Mode> mode_;
  int descriptor_;  // positioned, stream
  FileIdentity identity_;
  uint64_t max_bytes_;
  std::atomic<bool> is_cut_;     // `settle` is done with the file
  std::atomic<uint64_t> limit_;  // first byte behind the prepared part of the file
  LogWindows windows_;
  std::atomic<char*> first_page_;
  bool is_torn_;
  size_t stem_size_;
  char path_[kPath];
};

}  // namespace xlog
