#include "tools/log/row_reader.h"

#include <cstring>

namespace xlog {

namespace {

// Between windows a few bytes may stay unused; a row is longer.
constexpr uint64_t kShortestPlace = 8;
constexpr uint64_t kDay = 86'400'000'000'000;

std::string_view first_line(std::string_view text) { return text.substr(0, text.find('\n')); }

}  // namespace

RowReader::RowReader(std::string_view text, const Settings& settings)
    : text_(text),
      settings_(settings),
      format_(text.find('\n') != text.npos ? first_line(text) : std::string_view(), settings.device),
      error_(text.empty() ? "the file is empty: nothing was logged" : format_.error()) {
  if (!good()) {
    taken_ = begun_ = text_.size();
    return;
  }
  taken_ = begun_ = text.find('\n') + 1;
  current_ = std::make_unique<ReadJob>();
  for (size_t i = 0; settings_.helpers != nullptr && i < settings_.stretches_ahead; ++i) {
    jobs_.push_back(std::make_unique<ReadJob>());
    if (take_stretch(*jobs_[i])) {
      settings_.helpers->offer(*jobs_[i]);
      ++ahead_;
    }
  }
}

RowReader::~RowReader() {
  for (; ahead_ != 0; --ahead_, first_ = (first_ + 1) % jobs_.size()) {
    settings_.helpers->finish(*jobs_[first_]);
  }
}

// Whole lines only; a last line without its end is cut.
bool RowReader::take_stretch(ReadJob& job) {
  std::string_view rest = text_.substr(taken_);
  size_t end = rest.size() <= settings_.stretch ? rest.rfind('\n') : rest.find('\n', settings_.stretch);
  if (end == rest.npos && rest.size() > settings_.stretch) {
    end = rest.rfind('\n');
  }
  if (end == rest.npos) {
    cut_ = !rest.empty();
    return false;
  }
  job.format = &format_;
  job.text = rest.substr(0, end + 1);
  job.rest = rest.size() - job.text.size();
  taken_ += job.text.size();
  return true;
}

bool RowReader::next_batch() {
  if (current_ == nullptr) {
    return false;
  }
  first_line_ += current_->batch.lines;
  begun_ += current_->text.size();
  row_ = gap_at_ = 0;
  if (settings_.helpers == nullptr) {
    if (!take_stretch(*current_)) {
      current_.reset();
      return false;
    }
    current_->batch.parse(format_, current_->text, current_->rest);
    return true;
  }
  if (ahead_ == 0) {
    current_.reset();
    return false;
  }
  settings_.helpers->finish(*jobs_[first_]);
  std::swap(current_, jobs_[first_]);
  if (take_stretch(*jobs_[first_])) {
    settings_.helpers->offer(*jobs_[first_]);
  } else {
    --ahead_;
  }
  first_ = (first_ + 1) % jobs_.size();
  return true;
}

void RowReader::pass(const RowGap& gap) {
  if (gap.empty_lines != 0) {
    empty_lines_ += gap.empty_lines;
    gap_ += gap.empty_lines;
    return;
  }
  // The first bytes of a row are written last: pieces of one stand beside an empty line.
  if (has_pieces_ || gap_ != 0 || gap.beside_empty) {
    has_pieces_ = true;
    return;
  }
  ++foreign_rows_;
  if (foreign_lines_.size() < kForeignLines) {
    foreign_lines_.push_back(first_line_ + gap.line + 1);
  }
}

Event* RowReader::next() {
  for (;;) {
    if (current_ != nullptr) {
      RowBatch& batch = current_->batch;
      for (; gap_at_ < batch.gaps.size() && batch.gaps[gap_at_].before <= row_; ++gap_at_) {
        pass(batch.gaps[gap_at_]);
      }
      if (row_ < batch.rows().size()) {
        Event& row = batch.rows()[row_];
        line_ = first_line_ + batch.line_of(row_++) + 1;
        unfinished_rows_ += has_pieces_ || (gap_ >= kShortestPlace && !after_retracted_) ? 1 : 0;
        gap_ = 0;
        has_pieces_ = false;
        after_retracted_ = row.action == action::retracted;
        if (format_.has_time_of_day()) {
          midnights_ns_ += row.time + midnights_ns_ + kDay / 2 < last_time_ ? kDay : 0;
          row.time += midnights_ns_;
          last_time_ = row.time;
        }
        return &row;
      }
    }
    if (!next_batch()) {
      unfinished_rows_ += has_pieces_ ? 1 : 0;  // behind the last row, empty lines are what was never claimed
      has_pieces_ = false;
      return nullptr;
    }
  }
}

}  // namespace xlog
