#include "tools/log/row_batch.h"

#include <emmintrin.h>

#include <cstring>

namespace xlog {

namespace {

// Longer lines are no rows of a log: columns are cut long before.
constexpr size_t kLongestRow = 1 << 16;
constexpr size_t kStep = 16;

// Which of the 16 bytes are a comma, a newline or a quote.
unsigned marks_in(const char* at) {
  __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
  __m128i commas = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(','));
  __m128i newlines = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\n'));
  __m128i quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_or_si128(_mm_or_si128(commas, newlines), quotes)));
}

std::string_view without_return(std::string_view line) { return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line; }

}  // namespace

void RowBatch::parse(const RowFormat& format, std::string_view text, size_t rest) {
  rows.clear();
  row_lines.clear();
  gaps.clear();
  unquoted_.clear();
  lines = 0;
  fields_.resize(format.columns() + 1);
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
    for (unsigned marks = marks_in(block); marks != 0; marks &= marks - 1) {
      const char* mark = block + __builtin_ctz(marks);
      if (*mark == '"' || count == most) {
        goto slowly;
      }
      fields_[count++] = {field, static_cast<size_t>(mark - field)};
      field = mark + 1;
      if (*mark == '\n') {
        Event& row = rows.emplace_back();
        fields_[count - 1] = without_return(fields_[count - 1]);
        if (*at != '\0' && format.fill(fields_.data(), count, row)) {
          row_lines.push_back(lines);
        } else {
          rows.pop_back();
          add_gap({at, static_cast<size_t>(mark - at)}, field, readable);
        }
        return field;
      }
    }
  }
slowly:
  const auto* newline = static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
  const char* behind = newline != nullptr ? newline + 1 : end;
  take_slowly(format, {at, static_cast<size_t>((newline != nullptr ? newline : end) - at)}, behind, readable);
  return behind;
}

void RowBatch::take_slowly(const RowFormat& format, std::string_view line, const char* behind, const char* readable) {
  Event row;
  std::string_view whole = without_return(line);
  if (line.size() <= kLongestRow && line[0] != '\0' && line_.split(whole) && line_.size() == format.columns()) {
    for (size_t i = 0; i < line_.size(); ++i) {
      std::string_view text = line_[i];
      bool is_own = !text.empty() && (text.data() < line.data() || text.data() >= line.data() + line.size());
      fields_[i] = is_own ? std::string_view(unquoted_.emplace_back(text)) : text;
    }
    if (format.fill(fields_.data(), line_.size(), row)) {
      rows.push_back(row);
      row_lines.push_back(lines);
      return;
    }
  }
  add_gap(line, behind, readable);
}

// Lines that begin with NUL count as empty ones: a file system may leave such behind a power cut.
void RowBatch::add_gap(std::string_view line, const char* behind, const char* readable) {
  auto before = static_cast<uint32_t>(rows.size());
  bool is_empty = line.empty() || line[0] == '\0';
  if (is_empty && !gaps.empty() && gaps.back().before == before && gaps.back().empty_lines != 0) {
    ++gaps.back().empty_lines;
    return;
  }
  gaps.push_back(
      {.before = before, .empty_lines = is_empty ? 1U : 0U, .beside_empty = behind < readable && *behind == '\n', .line = lines});
}

}  // namespace xlog
