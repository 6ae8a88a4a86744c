#include "runtime/refusal/refusal_reporter.h"

#include <errno.h>
#include <string.h>

#include <new>

#include "runtime/base/diagnostics.h"
#include "runtime/base/memory_map.h"
#include "runtime/base/thread.h"
#include "runtime/record/file_io.h"

namespace xlog {

void RefusalReporter::configure(const Options& options, Recorder& recorder, std::string_view folder) noexcept {
  options_ = &options;
  recorder_ = &recorder;
  std::string_view wanted = options.summary.view();
  if (!options.has_summary() || wanted == "stderr") {
    return;
  }
  TextSink path(summary_path_, sizeof summary_path_ - 1);
  path.put(wanted.starts_with('/') ? "" : folder).put(wanted.starts_with('/') ? "" : "/").put(wanted);
  summary_path_[path.full() ? 0 : path.size()] = '\0';
}

bool RefusalReporter::begin(int device, uint64_t requested, uint64_t live_bytes, uint64_t now) noexcept {
  refusals_.fetch_add(1, std::memory_order_relaxed);
  if (!is_wanted() || telling_.exchange(true, std::memory_order_acquire)) {
    return false;
  }
  std::atomic<uint64_t>& least = least_[place(device)];
  uint64_t before = least.load(std::memory_order_relaxed);
  bool is_new = before == 0;
  if (requested != 0 && (is_new || requested < before)) {
    least.store(requested, std::memory_order_relaxed);
  }
  bool is_due = is_new ? files_ < kMostFiles || now >= next_ : live_bytes != live_told_ && now >= next_;
  if (!is_due) {
    telling_.store(false, std::memory_order_release);
    return false;
  }
  files_ += is_new && files_ < kMostFiles ? 1 : 0;
  live_told_ = live_bytes;
  began_ = now;
  return true;
}

// Too large for the stack of a thread that is not ours.
struct RefusalReporter::Draft {
  static constexpr size_t kJsonBytes = 64 << 10;
  StackLabel labels[LiveHolders::kMost];
  char json[kJsonBytes];
};

void RefusalReporter::tell(Refusal& refusal) noexcept {
  refusal.number = refusals_.load(std::memory_order_relaxed);
  void* memory = map_state(sizeof(Draft));
  if (text_ == nullptr) {
    text_ = static_cast<char*>(map_state(kTextBytes));
  }
  if (memory != nullptr && text_ != nullptr) {
    write(refusal, *new (memory) Draft);
  }
  if (memory != nullptr) {
    unmap_state(memory, sizeof(Draft));
  }
  // Told again at the earliest when a hundred times as long as this took has gone by.
  uint64_t now = steady_time();
  next_ = now + (now - began_) * 100;
  telling_.store(false, std::memory_order_release);
}

void RefusalReporter::write(const Refusal& refusal, Draft& draft) noexcept {
  std::span<StackLabel> labels(draft.labels, refusal.live.count);
  for (size_t i = 0; i < labels.size(); ++i) {
    labels[i].stack_id = refusal.live.list[i].stack_id;
  }
  if (recorder_->stacks_path() != nullptr) {
    read_labels(recorder_->stacks_path(), labels);
  }
  TextSink text(text_, kTextBytes);
  put_refusal_text(text, refusal, labels);
  text_size_ = text.size();
  write_summary(text.view());
  TextSink json(draft.json, sizeof draft.json);
  put_refusal_json(json, refusal, labels);
  Text<24> suffix;
  suffix.put(".oom.").decimal(files_).put(".json");
  if (!json.full() && options_->log.size != 0) {
    recorder_->write_companion(suffix.view(), json.view());
  }
}

void RefusalReporter::write_summary(std::string_view text) noexcept {
  int error = summary_path_[0] != '\0' ? rewrite_file(summary_path_, text) : 0;
  if (error != 0) {
    Text<1400> line;
    line.put("XLOG_SUMMARY: cannot write ").put(summary_path_).put(": ").put(strerrordesc_np(error));
    say(line.view());
    summary_path_[0] = '\0';
  }
}

void RefusalReporter::begin_exit() noexcept {
  if (text_size_ == 0 || telling_.exchange(true, std::memory_order_acquire)) {
    return;
  }
  bool is_open = false;
  for (const auto& each : least_) {
    is_open = is_open || each.load(std::memory_order_relaxed) != 0;
  }
  if (!is_open) {
    Text<200> line;
    line.put("memory was refused ").decimal(refusals_.load(std::memory_order_relaxed)).put(" times, and given later\n");
    write_summary(line.view());
  } else if (options_->summary.view() == "stderr") {
    for (std::string_view rest(text_, text_size_); !rest.empty();) {
      size_t end = rest.find('\n');
      say(rest.substr(0, end));
      rest.remove_prefix(end == rest.npos ? rest.size() : end + 1);
    }
  }
  telling_.store(false, std::memory_order_release);
}

}  // namespace xlog
