#include "tools/log/row_batch.h"

#include <emmintrin.h>

#include <bit>
#include <cstring>

namespace xlog {

namespace {

// Longer lines are no rows of a log: columns are cut long before.
constexpr size_t kLongestRow = 1 << 16;
constexpr size_t kStep = 64;

// Bit i: the byte i from `at` is `wanted`.
uint64_t places_of(char wanted, const char* at) {
  auto equal = [=](unsigned i) {
    __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i));
    return static_cast<uint64_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(wanted)))) << i;
  };
  return equal(0) | equal(16) | equal(32) | equal(48);
}

std::string_view without_return(std::string_view line) { return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line; }

}  // namespace

void RowBatch::parse(const RowFormat& format, std::string_view text, size_t rest) {
  count_ = 0;
  gaps.clear();
  unquoted_.clear();
  lines = 0;
  fields_.resize(format.columns() + kStep);  // those of one step too many
  const char* end = text.data() + text.size();
  for (const char* at = text.data(); at < end; ++lines) {
    at = parse_line(format, at, end, end + rest);
  }
}

// The line at `at`; returns where the next begins.
const char* RowBatch::parse_line(const RowFormat& format, const char* at, const char* end, const char* readable) {
  if (*at == '\n') {
    add_gap({}, at + 1, readable);
    return at + 1;
  }
  size_t most = format.columns();
  size_t count = 0;
  const char* field = at;
  for (const char* block = at; readable - block >= static_cast<ptrdiff_t>(kStep) && block < end; block += kStep) {
    uint64_t newline = places_of('\n', block);
    uint64_t in_line = newline != 0 ? newline ^ (newline - 1) : ~uint64_t{0};  // to the first newline, with it
    if ((places_of('"', block) & in_line) != 0) {
      break;
    }
    uint64_t commas = places_of(',', block) & in_line;
    for (; commas != 0; commas &= commas - 1) {
      const char* comma = block + std::countr_zero(commas);
      fields_[count++] = {field, static_cast<size_t>(comma - field)};
      field = comma + 1;
    }
    if (count > most) {
      break;
    }
    if (newline != 0) {
      const char* line_end = block + std::countr_zero(newline);
      fields_[count++] = without_return({field, static_cast<size_t>(line_end - field)});
      if (*at != '\0' && format.fill(fields_.data(), count, fresh_row())) {
        ++count_;
      } else {
        add_gap({at, static_cast<size_t>(line_end - at)}, line_end + 1, readable);
      }
      return line_end + 1;
    }
  }
  const auto* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
  const char* behind = newline != nullptr ? newline + 1 : end;
  take_slowly(format, {at, static_cast<size_t>((newline != nullptr ? newline : end) - at)}, behind, readable);
  return behind;
}

void RowBatch::take_slowly(const RowFormat& format, std::string_view line, const char* behind, const char* readable) {
  std::string_view whole = without_return(line);
  if (line.size() <= kLongestRow && line[0] != '\0' && line_.split(whole) && line_.size() == format.columns()) {
    for (size_t i = 0; i < line_.size(); ++i) {
      std::string_view text = line_[i];
      bool is_own = !text.empty() && (text.data() < line.data() || text.data() >= line.data() + line.size());
      fields_[i] = is_own ? std::string_view(unquoted_.emplace_back(text)) : text;
    }
    if (format.fill(fields_.data(), line_.size(), fresh_row())) {
      ++count_;
      return;
    }
  }
  add_gap(line, behind, readable);
}

// What it holds is of an earlier stretch, or nothing.
Event& RowBatch::fresh_row() {
  if (count_ == rows_.size()) {
    rows_.emplace_back();
    row_lines_.emplace_back();
  }
  row_lines_[count_] = lines;
  return rows_[count_];
}

// Lines that begin with NUL count as empty ones: a file system may leave such behind a power cut.
void RowBatch::add_gap(std::string_view line, const char* behind, const char* readable) {
  auto before = static_cast<uint32_t>(count_);
  bool is_empty = line.empty() || line[0] == '\0';
  if (is_empty && !gaps.empty() && gaps.back().before == before && gaps.back().empty_lines != 0) {
    ++gaps.back().empty_lines;
    return;
  }
  gaps.push_back(
      {.before = before, .empty_lines = is_empty ? 1U : 0U, .beside_empty = behind < readable && *behind == '\n', .line = lines});
}

}  // namespace xlog
