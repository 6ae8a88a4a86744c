#include "runtime/record/row_reader.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>

namespace xlog {

MappedFile::MappedFile(const std::string& path) {
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat info {};
  if (fd < 0 || fstat(fd, &info) != 0) {
    error_ = path + ": " + std::strerror(errno);
  } else if (!S_ISREG(info.st_mode)) {
    error_ = path + ": not a regular file";
  } else if (info.st_size > 0) {
    void* data = mmap(nullptr, static_cast<size_t>(info.st_size), PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
      error_ = path + ": " + std::strerror(errno);
    } else {
      data_ = static_cast<const char*>(data);
      size_ = static_cast<size_t>(info.st_size);
      madvise(data, size_, MADV_SEQUENTIAL);
    }
  }
  if (fd >= 0) {
    close(fd);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    munmap(const_cast<char*>(data_), size_);
  }
}

void MappedFile::forget_before(size_t offset) {
  constexpr size_t kStep = 16 << 20;
  size_t end = offset / kStep * kStep;
  if (end > forgotten_) {
    madvise(const_cast<char*>(data_) + forgotten_, end - forgotten_, MADV_DONTNEED);
    forgotten_ = end;
  }
}

bool CsvLine::split(std::string_view line) {
  count_ = 0;
  scratch_.clear();
  scratch_.reserve(line.size());  // views into it stay valid
  size_t at = 0;
  for (;;) {
    if (count_ == kMaxFields) {
      return false;
    }
    if (at < line.size() && line[at] == '"') {
      size_t start = scratch_.size();
      for (++at;; ++at) {
        if (at >= line.size()) {
          return false;
        }
        if (line[at] == '"') {
          if (at + 1 < line.size() && line[at + 1] == '"') {
            ++at;
          } else {
            break;
          }
        }
        scratch_.push_back(line[at]);
      }
      fields_[count_++] = std::string_view(scratch_).substr(start);
      ++at;
      if (at < line.size() && line[at] != ',') {
        return false;
      }
    } else {
      const void* comma = at < line.size() ? std::memchr(line.data() + at, ',', line.size() - at) : nullptr;
      size_t end = comma == nullptr ? line.size() : static_cast<size_t>(static_cast<const char*>(comma) - line.data());
      fields_[count_++] = line.substr(at, end - at);
      at = end;
    }
    if (at >= line.size()) {
      return true;
    }
    ++at;  // the comma
  }
}

namespace {
std::optional<uint64_t> parse(std::string_view text, int base) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}
}  // namespace

std::optional<uint64_t> parse_decimal(std::string_view text) { return parse(text, 10); }

std::optional<uint64_t> parse_hex(std::string_view text) { return text.starts_with("0x") ? parse(text.substr(2), 16) : std::nullopt; }

// Between windows a few bytes may stay unused; a row is longer.
constexpr uint64_t kShortestPlace = 8;

RowReader::RowReader(std::string_view text) : text_(text) {
  if (!read_header() && error_.empty()) {
    error_ = "not an xlog log: the first line is not its header";
  }
}

bool RowReader::read_header() {
  position_.fill(-1);
  if (text_.empty()) {
    error_ = "the file is empty: nothing was logged";
    return false;
  }
  size_t end = text_.find('\n');
  if (end == text_.npos || !line_.split(text_.substr(0, end))) {
    return false;
  }
  columns_ = line_.size();
  for (size_t i = 0; i < columns_; ++i) {
    for (size_t k = 0; k < kColumnCount; ++k) {
      if (line_[i] == kColumns[k]) {
        position_[k] = static_cast<int>(i);
      }
    }
  }
  at_ = end + 1;
  for (Column needed : {Column::thread, Column::time, Column::action, Column::ptr, Column::bytes}) {
    if (position_[static_cast<size_t>(needed)] < 0) {
      error_ = "not an xlog log: the header has no column \"" + std::string(kColumns[static_cast<size_t>(needed)]) + "\"";
      return false;
    }
  }
  return true;
}

bool RowReader::fill(Event& out) {
  auto number = [this](Column column) {
    std::string_view text = field(column);
    return text.empty() ? kNone : parse_decimal(text).value_or(kNone);
  };
  auto hex = [this](Column column) { return parse_hex(field(column)).value_or(kNone); };
  out.action = field(Column::action);
  out.time = number(Column::time);
  out.thread = number(Column::thread);
  if (line_.size() != columns_ || out.action.empty() || out.time == kNone || out.thread == kNone) {
    return false;
  }
  out.ptr = hex(Column::ptr);
  out.bytes = number(Column::bytes);
  out.stream = hex(Column::stream);
  out.device = number(Column::device);
  out.tag = field(Column::tag);
  out.query_id = field(Column::query_id);
  out.seq = number(Column::seq);
  out.generation = number(Column::generation);
  out.kind = field(Column::kind);
  out.api = field(Column::api);
  out.result = field(Column::result);
  out.message = field(Column::message);
  out.live_bytes = number(Column::live_bytes);
  out.elapsed_ns = number(Column::elapsed_ns);
  out.stack_id = number(Column::stack_id);
  out.thread_name = field(Column::thread_name);
  return true;
}

bool RowReader::next(Event& out) {
  while (at_ < text_.size()) {
    const void* found = std::memchr(text_.data() + at_, '\n', text_.size() - at_);
    if (found == nullptr) {
      cut_ = true;
      at_ = text_.size();
      return false;
    }
    size_t end = static_cast<size_t>(static_cast<const char*>(found) - text_.data());
    std::string_view line = text_.substr(at_, end - at_);
    at_ = end + 1;
    if (line.empty() || line[0] == '\0') {
      ++empty_lines_;
      ++gap_;
      continue;
    }
    if (line_.split(line) && fill(out)) {
      unfinished_rows_ += has_pieces_ || (gap_ >= kShortestPlace && !after_retracted_) ? 1 : 0;
      gap_ = 0;
      has_pieces_ = false;
      after_retracted_ = out.action == action::retracted;
      return true;
    }
    // The first bytes of a row are written last: pieces of one stand beside an empty line.
    if (has_pieces_ || gap_ != 0 || (at_ < text_.size() && text_[at_] == '\n')) {
      has_pieces_ = true;
    } else {
      ++foreign_rows_;
    }
  }
  unfinished_rows_ += has_pieces_ ? 1 : 0;  // behind the last row, empty lines are what was never claimed
  has_pieces_ = false;
  return false;
}

}  // namespace xlog
